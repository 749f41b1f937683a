-- How far devices are from the load at which devices of their model slow down. The curve of a model is the 99th percentile of all
-- its requests at each load; its knee is the lowest load with three times the percentile of the lowest load. The load of a device
-- is the highest at or above which it served a hundredth of its requests.
WITH newest AS (
  SELECT host, device, value AS model,
    ROW_NUMBER() OVER (PARTITION BY host, device ORDER BY ts DESC, value) AS rn
  FROM facts
  WHERE name = 'model' AND device <> '' AND ts < {t1}),
s AS (
  SELECT COALESCE(f.model, 'not known') AS model, h.host, h.device, h.class, h.load,
    h.bucket_low_ns AS lo, SUM(h.n) AS n
  FROM stages h LEFT JOIN newest f ON h.host = f.host AND h.device = f.device AND f.rn = 1
  WHERE h.class IN ('read', 'write') AND h.stage = 'g2c' AND h.load > 0 AND h.ts >= {t0} AND h.ts < {t1}
  GROUP BY COALESCE(f.model, 'not known'), h.host, h.device, h.class, h.load, h.bucket_low_ns),
k AS (
  SELECT model, class, load, lo, SUM(n) AS n FROM s GROUP BY model, class, load, lo),
c AS (
  SELECT model, class, load, lo,
    SUM(n) OVER (PARTITION BY model, class, load ORDER BY lo
                 ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS cum,
    SUM(n) OVER (PARTITION BY model, class, load) AS total
  FROM k),
p AS (
  SELECT model, class, load, MIN(lo) AS p99
  FROM c WHERE total >= 1000 AND cum * 1000 >= total * 990 GROUP BY model, class, load),
o AS (
  SELECT model, class, load, p99,
    ROW_NUMBER() OVER (PARTITION BY model, class ORDER BY load) AS rn
  FROM p),
base AS (
  SELECT model, class, p99 FROM o WHERE rn = 1),
knees AS (
  SELECT o.model, o.class, MIN(CASE WHEN o.p99 >= 3 * base.p99 THEN o.load END) AS knee, MAX(base.p99) AS base_ns
  FROM o JOIN base ON o.model = base.model AND o.class = base.class
  GROUP BY o.model, o.class),
l AS (
  SELECT model, host, device, class, load, SUM(n) AS n FROM s GROUP BY model, host, device, class, load),
a AS (
  SELECT model, host, device, class, load,
    SUM(n) OVER (PARTITION BY model, host, device, class ORDER BY load DESC
                 ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS above,
    SUM(n) OVER (PARTITION BY model, host, device, class) AS total
  FROM l),
used AS (
  SELECT model, host, device, class, MAX(CASE WHEN above * 100 >= total THEN load END) AS load
  FROM a GROUP BY model, host, device, class)
SELECT used.model, used.host, used.device, used.class, used.load, knees.knee, knees.base_ns, o.p99 AS at_load_ns
FROM used
JOIN knees ON used.model = knees.model AND used.class = knees.class
JOIN o ON used.model = o.model AND used.class = o.class AND used.load = o.load
WHERE knees.knee IS NOT NULL AND used.load * 2 >= knees.knee
ORDER BY used.host, used.device, used.class
