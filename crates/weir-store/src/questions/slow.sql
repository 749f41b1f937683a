-- Devices and hosts that are slower than their peers at equal load. A bin is a window of time at one load; in each, the percentile
-- of every device stands against median and MAD of the devices of the same model, firmware and scheduler (Iglewicz and Hoaglin,
-- 1993). Percentiles are of merged histograms. Each device and host has at least a row, the one of the figure that could be compared
-- in most bins: it says whether anything of it could be.
WITH
{owners}
{binned}
h AS (
  SELECT host, device, what, load, win,
    MIN(CASE WHEN cum * 1e3 >= total * 5e2 THEN lo END) AS p50,
    MIN(CASE WHEN cum * 1e3 >= total * 99e1 THEN lo END) AS p99
  FROM c WHERE total >= 1000
  GROUP BY host, device, what, load, win),
q AS (
  SELECT h.host, h.device, h.what, p.permille, h.load, h.win,
    CAST(CASE WHEN p.permille = 500 THEN h.p50 ELSE h.p99 END AS DOUBLE) AS v
  FROM (SELECT 500 AS permille UNION ALL SELECT 990 AS permille) p CROSS JOIN h
  UNION ALL
  SELECT w.host, '' AS device, 'wait ' || w.cause AS what, 0 AS permille, 0 AS load, w.win,
    CAST(w.ns AS DOUBLE) / CAST(s.n AS DOUBLE) AS v
  FROM (SELECT host, cause, ts - ts % {window} AS win, SUM(ns) AS ns
        FROM waits WHERE cause <> '' AND ts >= {t0} AND ts < {t1}
        GROUP BY host, cause, ts - ts % {window}) w
  JOIN (SELECT host, ts - ts % {window} AS win, SUM(n) AS n
        FROM syncs WHERE ts >= {t0} AND ts < {t1} GROUP BY host, ts - ts % {window}) s
    ON w.host = s.host AND w.win = s.win
  WHERE s.n > 0),
g AS (
  SELECT o.peers, q.host, q.device, q.what, q.permille, q.load, q.win, q.v
  FROM q JOIN owners o ON q.host = o.host AND q.device = o.device),
r AS (
  SELECT peers, host, device, what, permille, load, win, v,
    ROW_NUMBER() OVER (PARTITION BY peers, what, permille, load, win ORDER BY v, host, device) AS rn,
    COUNT(*) OVER (PARTITION BY peers, what, permille, load, win) AS n
  FROM g),
m AS (
  SELECT peers, host, device, what, permille, load, win, v, n,
    AVG(CASE WHEN 2 * rn BETWEEN n AND n + 2 THEN v END)
      OVER (PARTITION BY peers, what, permille, load, win) AS med
  FROM r),
d AS (
  SELECT peers, host, device, what, permille, load, win, v, n, med, ABS(v - med) AS dev,
    ROW_NUMBER() OVER (PARTITION BY peers, what, permille, load, win ORDER BY ABS(v - med), host, device) AS rn
  FROM m),
e AS (
  SELECT peers, host, device, what, permille, load, win, v, n, med,
    AVG(CASE WHEN 2 * rn BETWEEN n AND n + 2 THEN dev END)
      OVER (PARTITION BY peers, what, permille, load, win) AS mad
  FROM d),
z AS (
  SELECT peers, host, device, what, permille, v, n, med,
    6745e-4 * (v - med) / (1e0 + CASE WHEN mad > 5e-2 * med THEN mad ELSE 5e-2 * med END) AS z
  FROM e),
f AS (
  SELECT peers, host, device, what, permille, SUM(CASE WHEN n >= {peers} THEN 1 ELSE 0 END) AS bins,
    SUM(CASE WHEN n >= {peers} AND z > 35e-1 AND v > 13e-1 * med THEN 1 ELSE 0 END) AS slow_bins,
    COALESCE(MIN(CASE WHEN n >= {peers} THEN n END), MAX(n)) AS peers_n,
    COALESCE(median(CASE WHEN n >= {peers} THEN v END), 0e0) AS own_ns,
    COALESCE(median(CASE WHEN n >= {peers} THEN med END), 0e0) AS usual_ns
  FROM z GROUP BY peers, host, device, what, permille),
o AS (
  SELECT peers, host, device, what, permille, bins, slow_bins, peers_n, own_ns, usual_ns,
    ROW_NUMBER() OVER (PARTITION BY host, device ORDER BY CASE WHEN permille = 0 THEN 1 ELSE 0 END, bins DESC, what, permille) AS rn
  FROM f)
SELECT peers, host, device, what, permille, bins, slow_bins, peers_n, own_ns, usual_ns
FROM o
WHERE slow_bins > 0 OR rn = 1
ORDER BY CASE WHEN slow_bins > 0 THEN 0 ELSE 1 END, host, device, what, permille
