SELECT * FROM (SELECT k, point, rank() OVER (PARTITION BY k ORDER BY point) AS place FROM nested) WHERE place <= 1
