-- Which devices and hosts are there to be compared, and with how many: those with requests or syncs, and devices with facts of hosts of
-- which no kernel is known. Whether facts say what each is, whether they say its model, and how many of its kind there are.
WITH
{owners}
seen AS (
  SELECT host, device FROM stages WHERE ts >= {t0} AND ts < {t1} GROUP BY host, device
  UNION ALL
  SELECT host, '' AS device FROM syncs WHERE ts >= {t0} AND ts < {t1} GROUP BY host
  UNION ALL
  SELECT f.host, f.device
  FROM facts f LEFT JOIN described k ON f.host = k.host
  WHERE k.host IS NULL AND f.device <> '' AND f.ts < {t1}
  GROUP BY f.host, f.device),
u AS (
  SELECT host, device FROM seen GROUP BY host, device)
SELECT u.host, u.device, CAST(CASE WHEN o.host IS NULL THEN 0 ELSE 1 END AS BIGINT) AS is_known,
  CAST(CASE WHEN d.model <> '' THEN 1 ELSE 0 END AS BIGINT) AS has_model,
  COUNT(*) OVER (PARTITION BY o.peers, CASE WHEN u.device = '' THEN 1 ELSE 0 END) AS kind_n
FROM u LEFT JOIN owners o ON u.host = o.host AND u.device = o.device
  LEFT JOIN devices d ON u.host = d.host AND u.device = d.device
ORDER BY u.host, u.device
