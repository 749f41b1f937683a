-- Devices and hosts, with what makes some of them peers: model, firmware and scheduler. A device has a row if its model is known, or
-- if facts have something of it and its host's kernel: then it has no model. A host has the peers of the device that serves most of its
-- syncs, and of one that has no model only where no other serves any. It has no row where nothing is known of that device. A part of
-- other questions.
newest AS (
  SELECT host, device, name, value,
    ROW_NUMBER() OVER (PARTITION BY host, device, name ORDER BY ts DESC, value) AS rn
  FROM facts
  WHERE name IN ('model', 'firmware', 'scheduler', 'kernel') AND ts < {t1}),
described AS (
  SELECT host FROM newest WHERE name = 'kernel' AND device = '' AND rn = 1),
devices AS (
  SELECT n.host, n.device, MAX(CASE WHEN n.name = 'model' THEN n.value ELSE '' END) AS model,
    COALESCE(MAX(CASE WHEN n.name = 'model' THEN n.value END), '-') || ', ' ||
    COALESCE(MAX(CASE WHEN n.name = 'firmware' THEN n.value END), '-') || ', ' ||
    COALESCE(MAX(CASE WHEN n.name = 'scheduler' THEN n.value END), '-') AS peers
  FROM newest n LEFT JOIN described k ON n.host = k.host
  WHERE n.rn = 1 AND n.device <> ''
  GROUP BY n.host, n.device
  HAVING MAX(CASE WHEN n.name = 'model' OR k.host IS NOT NULL THEN 1 ELSE 0 END) = 1),
served AS (
  SELECT host, device, SUM(n) AS n
  FROM stages
  WHERE class IN ('flush', 'sync_write') AND stage = 'g2c' AND ts >= {t0} AND ts < {t1}
  GROUP BY host, device),
carriers AS (
  SELECT COALESCE(d.host, s.host) AS host, d.peers,
    ROW_NUMBER() OVER (PARTITION BY COALESCE(d.host, s.host) ORDER BY CASE WHEN s.n IS NULL THEN 1 ELSE 0 END,
                       CASE WHEN d.model = '' THEN 1 ELSE 0 END, s.n DESC, COALESCE(d.device, s.device)) AS rn
  FROM devices d FULL JOIN served s ON d.host = s.host AND d.device = s.device),
owners AS (
  SELECT host, device, peers FROM devices
  UNION ALL
  SELECT host, '' AS device, peers FROM carriers WHERE rn = 1 AND peers IS NOT NULL),
