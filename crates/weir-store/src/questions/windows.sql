-- Percentiles by window of time, each device beside its peers: devices of the same model, firmware and scheduler at the same load. Of a
-- window the load counts that has most of the device's requests. Given are the two hundred devices of a class and stage that exceed
-- their peers by most, in the mean of their windows; of the others, how many they are and how far the farthest is from its peers.
-- Sums are of whole thousandths, since the order of a sum of floats is the engine's. Percentiles are of merged histograms.
WITH
{owners}
{binned}
q AS (
  SELECT host, device, what, load, win, MAX(total) AS requests,
    CAST(MIN(CASE WHEN cum * 1e3 >= total * 5e2 THEN lo END) AS DOUBLE) AS p50,
    CAST(MIN(CASE WHEN cum * 1e3 >= total * 99e1 THEN lo END) AS DOUBLE) AS p99
  FROM c WHERE total >= 1000
  GROUP BY host, device, what, load, win),
g AS (
  SELECT o.peers, q.host, q.device, q.what, q.load, q.win, q.requests, q.p50, q.p99
  FROM q JOIN owners o ON q.host = o.host AND q.device = o.device),
r AS (
  SELECT peers, host, device, what, load, win, requests, p50, p99,
    ROW_NUMBER() OVER (PARTITION BY peers, what, load, win ORDER BY p50, host, device) AS rn50,
    ROW_NUMBER() OVER (PARTITION BY peers, what, load, win ORDER BY p99, host, device) AS rn99,
    COUNT(*) OVER (PARTITION BY peers, what, load, win) AS n
  FROM g),
m AS (
  SELECT peers, host, device, what, load, win, requests, p50, p99, n,
    AVG(CASE WHEN 2 * rn50 BETWEEN n AND n + 2 THEN p50 END) OVER (PARTITION BY peers, what, load, win) AS med50,
    AVG(CASE WHEN 2 * rn99 BETWEEN n AND n + 2 THEN p99 END) OVER (PARTITION BY peers, what, load, win) AS med99,
    MIN(CASE WHEN 4 * rn99 >= n THEN p99 END) OVER (PARTITION BY peers, what, load, win) AS low99,
    MIN(CASE WHEN 4 * rn99 >= 3 * n THEN p99 END) OVER (PARTITION BY peers, what, load, win) AS high99
  FROM r),
k AS (
  SELECT peers, host, device, what, load, win, requests, p50, p99, n, med50, med99, low99, high99,
    ROW_NUMBER() OVER (PARTITION BY host, device, what, win ORDER BY requests DESC, load) AS rn
  FROM m WHERE n >= {peers}),
w AS (
  SELECT peers, host, device, what, load, win, requests, p50, p99, n, med50, med99, low99, high99,
    (1e0 + p50) / (1e0 + med50) AS by50, (1e0 + p99) / (1e0 + med99) AS by99
  FROM k WHERE rn = 1),
s AS (
  SELECT peers, host, device, what, load, win, requests, p50, p99, n, med50, med99, low99, high99, by99,
    SUM(CAST(floor(1e3 * CASE WHEN by50 > by99 THEN by50 ELSE by99 END) AS BIGINT))
      OVER (PARTITION BY host, device, what) AS excess,
    COUNT(*) OVER (PARTITION BY host, device, what) AS windows
  FROM w),
o AS (
  SELECT peers, host, device, what, load, win, requests, p50, p99, n, med50, med99, low99, high99, by99,
    DENSE_RANK() OVER (PARTITION BY what ORDER BY CAST(excess AS DOUBLE) / CAST(windows AS DOUBLE) DESC, host, device) AS place
  FROM s),
t AS (
  SELECT peers, host, device, what, load, win, requests, p50, p99, n, med50, med99, low99, high99, by99, place,
    MAX(place) OVER (PARTITION BY what) AS places,
    COALESCE(MAX(CASE WHEN place > 200 THEN by99 END) OVER (PARTITION BY what), 0e0) AS others_most
  FROM o)
SELECT peers, host, device, what, win AS ts, load, requests, n AS peers_n, p50 AS p50_ns, p99 AS p99_ns,
  med50 AS peers_p50_ns, med99 AS peers_p99_ns, low99 AS peers_low_ns, high99 AS peers_high_ns, by99 AS ratio,
  CAST(CASE WHEN places > 200 THEN places - 200 ELSE 0 END AS BIGINT) AS others, others_most
FROM t
WHERE place <= 200
ORDER BY what, host, device, win
