-- How far devices are from the load at which devices of their model slow down. The curve of a model is the 99th percentile of all
-- its requests at each load; its knee is the lowest load with three times the percentile of the lowest load, and is not known where no
-- load has that. A device of an unknown model has a curve of its own. The load of a device is the highest at or above which it served a
-- hundredth of its requests.
WITH
{owners}
kinds AS (
  SELECT host, device, model, CASE WHEN model = '' THEN host || ' ' || device ELSE '' END AS alone FROM devices),
b AS (
  SELECT host, device, class, load, bucket_low_ns AS lo, SUM(n) AS n
  FROM stages
  WHERE class IN ('read', 'write') AND stage = 'g2c' AND load > 0 AND ts >= {t0} AND ts < {t1}
  GROUP BY host, device, class, load, bucket_low_ns),
k AS (
  SELECT f.model, f.alone, b.class, b.load, b.lo, SUM(b.n) AS n
  FROM b JOIN kinds f ON b.host = f.host AND b.device = f.device
  GROUP BY f.model, f.alone, b.class, b.load, b.lo),
c AS (
  SELECT model, alone, class, load, lo,
    SUM(n) OVER (PARTITION BY model, alone, class, load ORDER BY lo
                 ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS cum,
    SUM(n) OVER (PARTITION BY model, alone, class, load) AS total
  FROM k),
p AS (
  SELECT model, alone, class, load, MIN(lo) AS p99
  FROM c WHERE total >= 1000 AND cum * 1e3 >= total * 99e1 GROUP BY model, alone, class, load),
o AS (
  SELECT model, alone, class, load, p99,
    ROW_NUMBER() OVER (PARTITION BY model, alone, class ORDER BY load) AS rn
  FROM p),
base AS (
  SELECT model, alone, class, load, p99,
    MAX(CASE WHEN rn = 1 THEN p99 END) OVER (PARTITION BY model, alone, class) AS base_ns
  FROM o),
curve AS (
  SELECT model, alone, class, load, p99, base_ns,
    MIN(CASE WHEN p99 >= 3 * base_ns THEN load END) OVER (PARTITION BY model, alone, class) AS knee
  FROM base),
l AS (
  SELECT host, device, class, load, SUM(n) AS n FROM b GROUP BY host, device, class, load),
a AS (
  SELECT host, device, class, load,
    SUM(n) OVER (PARTITION BY host, device, class ORDER BY load DESC
                 ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS above,
    SUM(n) OVER (PARTITION BY host, device, class) AS total
  FROM l),
d AS (
  SELECT host, device, class, MAX(CASE WHEN above * 100 >= total THEN load END) AS load
  FROM a GROUP BY host, device, class),
used AS (
  SELECT f.model, f.alone, d.host, d.device, d.class, d.load
  FROM d JOIN kinds f ON d.host = f.host AND d.device = f.device)
SELECT used.model, used.host, used.device, used.class, used.load, curve.knee, curve.base_ns, curve.p99 AS at_load_ns
FROM used
JOIN curve ON used.model = curve.model AND used.alone = curve.alone AND used.class = curve.class AND used.load = curve.load
ORDER BY used.host, used.device, used.class
