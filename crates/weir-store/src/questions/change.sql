-- Before and after a time, each device with itself at equal load. Percentiles are of merged histograms.
WITH b AS (
  SELECT host, device, class AS what, load, CASE WHEN ts < {at} THEN 0 ELSE 1 END AS part,
    bucket_low_ns AS lo, SUM(n) AS n
  FROM stages
  WHERE class IN ('read', 'write') AND stage = 'g2c' AND ts >= {t0} AND ts < {t1}
  GROUP BY host, device, class, load, CASE WHEN ts < {at} THEN 0 ELSE 1 END, bucket_low_ns
  UNION ALL
  SELECT host, '' AS device, 'sync' AS what, load, CASE WHEN ts < {at} THEN 0 ELSE 1 END AS part,
    bucket_low_ns AS lo, SUM(n) AS n
  FROM syncs
  WHERE ts >= {t0} AND ts < {t1}
  GROUP BY host, load, CASE WHEN ts < {at} THEN 0 ELSE 1 END, bucket_low_ns),
c AS (
  SELECT host, device, what, load, part, lo,
    SUM(n) OVER (PARTITION BY host, device, what, load, part ORDER BY lo
                 ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS cum,
    SUM(n) OVER (PARTITION BY host, device, what, load, part) AS total
  FROM b),
q AS (
  SELECT host, device, what, load, part, MAX(total) AS total, MIN(lo) AS p99
  FROM c WHERE total >= 1000 AND cum * 1e3 >= total * 99e1
  GROUP BY host, device, what, load, part),
j AS (
  SELECT host, device, what, load, MIN(total) AS total,
    MAX(CASE WHEN part = 0 THEN p99 END) AS before_ns, MAX(CASE WHEN part = 1 THEN p99 END) AS after_ns
  FROM q GROUP BY host, device, what, load HAVING COUNT(*) = 2),
t AS (
  SELECT host, device, what, load, before_ns, after_ns,
    ROW_NUMBER() OVER (PARTITION BY host, device, what ORDER BY total DESC, load) AS rn
  FROM j),
x AS (
  SELECT host, device, what, CAST(after_ns AS DOUBLE) / CAST(before_ns AS DOUBLE) AS ratio
  FROM t WHERE rn = 1 AND before_ns > 0),
y AS (
  SELECT host, device, what, ratio,
    ROW_NUMBER() OVER (PARTITION BY what ORDER BY ratio DESC, host, device) AS rn
  FROM x)
SELECT what, COUNT(*) AS devices, SUM(CASE WHEN ratio < 8e-1 THEN 1 ELSE 0 END) AS better,
  SUM(CASE WHEN ratio > 125e-2 THEN 1 ELSE 0 END) AS worse, median(ratio) AS ratio,
  MAX(ratio) AS worst_ratio, MAX(CASE WHEN rn = 1 THEN host END) AS worst_host,
  MAX(CASE WHEN rn = 1 THEN device END) AS worst_device
FROM y
GROUP BY what
ORDER BY what
