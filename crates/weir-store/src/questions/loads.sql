-- The 99th percentile of each device at each load, beside its peers: devices of the same model, firmware and scheduler at that load.
-- Given are the two hundred devices of a class and stage that exceed their peers by most, in the mean of their loads, as in
-- windows.sql. Percentiles are of merged histograms.
WITH
{owners}
b AS (
  SELECT host, device, class || ' ' || stage AS what, load, bucket_low_ns AS lo, SUM(n) AS n
  FROM stages
  WHERE class IN ('read', 'write') AND stage IN ('g2d', 'd2c') AND ts >= {t0} AND ts < {t1}
  GROUP BY host, device, class || ' ' || stage, load, bucket_low_ns
  UNION ALL
  SELECT host, '' AS device, 'sync' AS what, load, bucket_low_ns AS lo, SUM(n) AS n
  FROM syncs
  WHERE ts >= {t0} AND ts < {t1}
  GROUP BY host, load, bucket_low_ns),
c AS (
  SELECT host, device, what, load, lo,
    SUM(n) OVER (PARTITION BY host, device, what, load ORDER BY lo
                 ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS cum,
    SUM(n) OVER (PARTITION BY host, device, what, load) AS total
  FROM b),
q AS (
  SELECT host, device, what, load, MAX(total) AS requests,
    CAST(MIN(CASE WHEN cum * 1e3 >= total * 5e2 THEN lo END) AS DOUBLE) AS p50,
    CAST(MIN(CASE WHEN cum * 1e3 >= total * 99e1 THEN lo END) AS DOUBLE) AS p99
  FROM c WHERE total >= 1000
  GROUP BY host, device, what, load),
g AS (
  SELECT o.peers, q.host, q.device, q.what, q.load, q.requests, q.p50, q.p99
  FROM q JOIN owners o ON q.host = o.host AND q.device = o.device),
r AS (
  SELECT peers, host, device, what, load, requests, p50, p99,
    ROW_NUMBER() OVER (PARTITION BY peers, what, load ORDER BY p50, host, device) AS rn50,
    ROW_NUMBER() OVER (PARTITION BY peers, what, load ORDER BY p99, host, device) AS rn99,
    COUNT(*) OVER (PARTITION BY peers, what, load) AS n
  FROM g),
m AS (
  SELECT peers, host, device, what, load, requests, p50, p99, n,
    AVG(CASE WHEN 2 * rn50 BETWEEN n AND n + 2 THEN p50 END) OVER (PARTITION BY peers, what, load) AS med50,
    AVG(CASE WHEN 2 * rn99 BETWEEN n AND n + 2 THEN p99 END) OVER (PARTITION BY peers, what, load) AS med99,
    MIN(CASE WHEN 4 * rn99 >= n THEN p99 END) OVER (PARTITION BY peers, what, load) AS low99,
    MIN(CASE WHEN 4 * rn99 >= 3 * n THEN p99 END) OVER (PARTITION BY peers, what, load) AS high99
  FROM r),
s AS (
  SELECT peers, host, device, what, load, requests, p50, p99, n, med99, low99, high99,
    SUM(CAST(floor(1e3 * CASE WHEN (1e0 + p50) / (1e0 + med50) > (1e0 + p99) / (1e0 + med99)
                              THEN (1e0 + p50) / (1e0 + med50) ELSE (1e0 + p99) / (1e0 + med99) END) AS BIGINT))
      OVER (PARTITION BY host, device, what) AS excess,
    COUNT(*) OVER (PARTITION BY host, device, what) AS loads
  FROM m WHERE n >= {peers}),
o AS (
  SELECT peers, host, device, what, load, requests, p50, p99, n, med99, low99, high99,
    DENSE_RANK() OVER (PARTITION BY what ORDER BY CAST(excess AS DOUBLE) / CAST(loads AS DOUBLE) DESC, host, device) AS place
  FROM s)
SELECT peers, host, device, what, load, requests, n AS peers_n, p50 AS p50_ns, p99 AS p99_ns,
  med99 AS peers_p99_ns, low99 AS peers_low_ns, high99 AS peers_high_ns
FROM o
WHERE place <= 200
ORDER BY what, host, device, load
