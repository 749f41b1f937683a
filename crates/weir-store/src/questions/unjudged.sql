-- How many devices have no peers, since their models are not known: those with requests, and those with facts of hosts of which not
-- all is known.
WITH
{owners}
seen AS (
  SELECT host, device FROM stages WHERE ts >= {t0} AND ts < {t1} GROUP BY host, device
  UNION ALL
  SELECT f.host, f.device
  FROM facts f LEFT JOIN described k ON f.host = k.host
  WHERE k.host IS NULL AND f.device <> '' AND f.ts < {t1}
  GROUP BY f.host, f.device),
u AS (
  SELECT host, device FROM seen GROUP BY host, device)
SELECT COUNT(*) AS devices
FROM u s LEFT JOIN devices d ON s.host = d.host AND s.device = d.device
WHERE d.host IS NULL
