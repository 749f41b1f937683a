-- Latency by stage over devices: the spread of their percentiles, and which is slowest. Percentiles are of merged histograms.
WITH b AS (
  SELECT host, device, class, stage, bucket_low_ns AS lo, SUM(n) AS n
  FROM stages
  WHERE class IN ('read', 'write', 'sync_write', 'flush') AND ts >= {t0} AND ts < {t1}
  GROUP BY host, device, class, stage, bucket_low_ns
  UNION ALL
  SELECT host, '' AS device, 'sync' AS class, 'whole' AS stage, bucket_low_ns AS lo, SUM(n) AS n
  FROM syncs
  WHERE ts >= {t0} AND ts < {t1}
  GROUP BY host, bucket_low_ns),
c AS (
  SELECT host, device, class, stage, lo,
    SUM(n) OVER (PARTITION BY host, device, class, stage ORDER BY lo
                 ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS cum,
    SUM(n) OVER (PARTITION BY host, device, class, stage) AS total
  FROM b),
q AS (
  SELECT host, device, class, stage, MAX(total) AS total,
    MIN(CASE WHEN cum * 1e3 >= total * 5e2 THEN lo END) AS p50,
    MIN(CASE WHEN cum * 1e3 >= total * 99e1 THEN lo END) AS p99
  FROM c GROUP BY host, device, class, stage),
r AS (
  SELECT host, device, class, stage, total, p50, p99,
    ROW_NUMBER() OVER (PARTITION BY class, stage ORDER BY p99 DESC, host, device) AS place
  FROM q WHERE total >= 1000)
SELECT class, stage, COUNT(*) AS devices, SUM(total) AS requests,
  median(CAST(p50 AS DOUBLE)) AS p50_ns, MIN(p99) AS p99_least_ns, median(CAST(p99 AS DOUBLE)) AS p99_ns,
  MAX(p99) AS p99_most_ns, MAX(CASE WHEN place = 1 THEN host END) AS slowest_host,
  MAX(CASE WHEN place = 1 THEN device END) AS slowest_device
FROM r
GROUP BY class, stage
ORDER BY class, stage
