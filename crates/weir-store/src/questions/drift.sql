-- Facts in which a host or device differs from most of its kind: devices from those of the same model, hosts from all.
WITH newest AS (
  SELECT host, device, name, value,
    ROW_NUMBER() OVER (PARTITION BY host, device, name ORDER BY ts DESC, value) AS rn
  FROM facts
  WHERE ts < {t1}),
latest AS (
  SELECT host, device, name, value FROM newest WHERE rn = 1),
models AS (
  SELECT host, device, value AS model FROM latest WHERE name = 'model' AND device <> ''),
g AS (
  SELECT CASE WHEN l.device = '' THEN 'hosts' ELSE COALESCE(m.model, 'not known') END AS peers,
    l.host, l.device, l.name, l.value
  FROM latest l LEFT JOIN models m ON l.host = m.host AND l.device = m.device
  WHERE l.name <> 'model'),
v AS (
  SELECT peers, name, value, COUNT(*) AS n FROM g GROUP BY peers, name, value),
o AS (
  SELECT peers, name, value, n,
    SUM(n) OVER (PARTITION BY peers, name) AS total,
    ROW_NUMBER() OVER (PARTITION BY peers, name ORDER BY n DESC, value) AS rn
  FROM v)
SELECT g.peers, g.name, g.host, g.device, g.value, o.value AS usual, o.n AS usual_n, o.total
FROM g JOIN o ON g.peers = o.peers AND g.name = o.name
WHERE o.rn = 1 AND g.value <> o.value AND o.total >= {peers} AND o.n * 10 >= o.total * 8
ORDER BY g.name, g.peers, g.host, g.device
