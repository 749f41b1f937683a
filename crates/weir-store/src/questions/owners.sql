-- Devices and hosts, with what makes some of them peers: model, firmware and scheduler. A part of other questions.
newest AS (
  SELECT host, device, name, value,
    ROW_NUMBER() OVER (PARTITION BY host, device, name ORDER BY ts DESC, value) AS rn
  FROM facts
  WHERE name IN ('model', 'firmware', 'scheduler') AND device <> '' AND ts < {t1}),
devices AS (
  SELECT host, device,
    MAX(CASE WHEN name = 'model' THEN value ELSE '' END) || ', ' ||
    MAX(CASE WHEN name = 'firmware' THEN value ELSE '' END) || ', ' ||
    MAX(CASE WHEN name = 'scheduler' THEN value ELSE '' END) AS peers
  FROM newest WHERE rn = 1 GROUP BY host, device),
owners AS (
  SELECT host, device, peers FROM devices
  UNION ALL
  SELECT host, '' AS device, MIN(peers) AS peers FROM devices GROUP BY host),
