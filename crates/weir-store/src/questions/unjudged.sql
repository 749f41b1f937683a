-- How many devices and hosts have no peers, since models are not known: those with requests or syncs, and devices with facts of hosts
-- of which no kernel is known.
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
SELECT COUNT(CASE WHEN u.device <> '' THEN 1 END) AS devices, COUNT(CASE WHEN u.device = '' THEN 1 END) AS hosts
FROM u LEFT JOIN owners o ON u.host = o.host AND u.device = o.device
WHERE o.host IS NULL
