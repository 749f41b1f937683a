-- How tails grow: the 99th percentile in three thirds of the time, each device with itself at the load with most requests, and
-- beside it what is usual for all devices.
WITH b AS (
  SELECT host, device, class AS what, load,
    CASE WHEN ts < {t0} + {third} THEN 1 WHEN ts < {t0} + 2 * {third} THEN 2 ELSE 3 END AS part,
    bucket_low_ns AS lo, SUM(n) AS n
  FROM stages
  WHERE class IN ('read', 'write') AND stage = 'g2c' AND ts >= {t0} AND ts < {t1}
  GROUP BY host, device, class, load,
    CASE WHEN ts < {t0} + {third} THEN 1 WHEN ts < {t0} + 2 * {third} THEN 2 ELSE 3 END, bucket_low_ns),
c AS (
  SELECT host, device, what, load, part, lo,
    SUM(n) OVER (PARTITION BY host, device, what, load, part ORDER BY lo
                 ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS cum,
    SUM(n) OVER (PARTITION BY host, device, what, load, part) AS total
  FROM b),
q AS (
  SELECT host, device, what, load, part, MAX(total) AS total,
    MIN(CASE WHEN cum * 1e3 >= total * 5e2 THEN lo END) AS p50,
    MIN(CASE WHEN cum * 1e3 >= total * 99e1 THEN lo END) AS p99
  FROM c WHERE total >= 1000
  GROUP BY host, device, what, load, part),
j AS (
  SELECT host, device, what, load, MIN(total) AS total,
    MAX(CASE WHEN part = 1 THEN p99 END) AS first_ns, MAX(CASE WHEN part = 2 THEN p99 END) AS second_ns,
    MAX(CASE WHEN part = 3 THEN p99 END) AS third_ns,
    MAX(CASE WHEN part = 1 THEN p50 END) AS first_p50_ns, MAX(CASE WHEN part = 3 THEN p50 END) AS third_p50_ns
  FROM q GROUP BY host, device, what, load HAVING COUNT(*) = 3),
t AS (
  SELECT host, device, what, load, first_ns, second_ns, third_ns, first_p50_ns, third_p50_ns,
    CAST(third_ns AS DOUBLE) / CAST(first_ns AS DOUBLE) AS growth,
    ROW_NUMBER() OVER (PARTITION BY host, device, what ORDER BY total DESC, load) AS rn
  FROM j WHERE first_ns > 0),
r AS (
  SELECT host, device, what, load, first_ns, second_ns, third_ns, first_p50_ns, third_p50_ns, growth,
    ROW_NUMBER() OVER (PARTITION BY what ORDER BY growth, host, device) AS rn,
    COUNT(*) OVER (PARTITION BY what) AS n
  FROM t WHERE rn = 1),
u AS (
  SELECT host, device, what, load, first_ns, second_ns, third_ns, first_p50_ns, third_p50_ns, growth, n,
    AVG(CASE WHEN 2 * rn BETWEEN n AND n + 2 THEN growth END) OVER (PARTITION BY what) AS usual
  FROM r)
SELECT host, device, what, load, first_ns, second_ns, third_ns, first_p50_ns, third_p50_ns, growth, usual, n AS devices
FROM u
ORDER BY host, device, what
