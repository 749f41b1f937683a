-- Histograms of requests and syncs by window and load, and how far each bucket reaches. A part of other questions.
b AS (
  SELECT host, device, class || ' ' || stage AS what, load, ts - ts % {window} AS win,
    bucket_low_ns AS lo, SUM(n) AS n
  FROM stages
  WHERE class IN ('read', 'write') AND stage IN ('g2d', 'd2c') AND ts >= {t0} AND ts < {t1}
  GROUP BY host, device, class || ' ' || stage, load, ts - ts % {window}, bucket_low_ns
  UNION ALL
  SELECT host, '' AS device, 'sync' AS what, load, ts - ts % {window} AS win,
    bucket_low_ns AS lo, SUM(n) AS n
  FROM syncs
  WHERE ts >= {t0} AND ts < {t1}
  GROUP BY host, load, ts - ts % {window}, bucket_low_ns),
c AS (
  SELECT host, device, what, load, win, lo,
    SUM(n) OVER (PARTITION BY host, device, what, load, win ORDER BY lo
                 ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS cum,
    SUM(n) OVER (PARTITION BY host, device, what, load, win) AS total
  FROM b),
