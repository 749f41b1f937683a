-- How many devices and hosts have no peers, since models are not known: those with requests or syncs, and devices with facts of hosts
-- of which no kernel is known. And how many have too few of their kind.
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
  SELECT host, device FROM seen GROUP BY host, device),
kinds AS (
  SELECT u.host, u.device, o.host AS known,
    COUNT(*) OVER (PARTITION BY o.peers, CASE WHEN u.device = '' THEN 1 ELSE 0 END) AS n
  FROM u LEFT JOIN owners o ON u.host = o.host AND u.device = o.device)
SELECT COUNT(CASE WHEN known IS NULL AND device <> '' THEN 1 END) AS devices,
  COUNT(CASE WHEN known IS NULL AND device = '' THEN 1 END) AS hosts,
  COUNT(CASE WHEN known IS NOT NULL AND n < {peers} AND device <> '' THEN 1 END) AS few_devices,
  COUNT(CASE WHEN known IS NOT NULL AND n < {peers} AND device = '' THEN 1 END) AS few_hosts
FROM kinds
