-- Facts in which a host or device differs from most of its kind: devices from those of the same model, hosts from all. The last row, without
-- a name, says of how many facts of a kind (total) how many could be compared (usual_n).
WITH
{owners}
stated AS (
  SELECT host, device, name, value,
    ROW_NUMBER() OVER (PARTITION BY host, device, name ORDER BY ts DESC, value) AS rn
  FROM facts
  WHERE name <> 'model' AND ts < {t1}),
g AS (
  SELECT CASE WHEN l.device = '' THEN 'hosts' WHEN d.model <> '' THEN d.model ELSE 'not known' END AS peers,
    l.host, l.device, l.name, l.value
  FROM stated l LEFT JOIN devices d ON l.host = d.host AND l.device = d.device
    LEFT JOIN described k ON l.host = k.host
  WHERE l.rn = 1 AND (l.device = '' OR d.host IS NOT NULL OR k.host IS NOT NULL)),
v AS (
  SELECT peers, name, value, COUNT(*) AS n FROM g GROUP BY peers, name, value),
o AS (
  SELECT peers, name, value, n,
    SUM(n) OVER (PARTITION BY peers, name) AS total,
    ROW_NUMBER() OVER (PARTITION BY peers, name ORDER BY n DESC, value) AS rn
  FROM v),
a AS (
  SELECT g.peers, g.name, g.host, g.device, g.value, o.value AS usual, o.n AS usual_n, o.total
  FROM g JOIN o ON g.peers = o.peers AND g.name = o.name
  WHERE o.rn = 1 AND g.value <> o.value AND o.total >= {peers} AND o.n * 10 >= o.total * 8
  UNION ALL
  SELECT '' AS peers, '' AS name, '' AS host, '' AS device, '' AS value, '' AS usual,
    COUNT(CASE WHEN total >= {peers} THEN 1 END) AS usual_n, COUNT(*) AS total
  FROM o WHERE rn = 1)
SELECT peers, name, host, device, value, usual, usual_n, total
FROM a
ORDER BY CASE WHEN name = '' THEN 1 ELSE 0 END, name, peers, host, device
