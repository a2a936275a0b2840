-- Without an equality, and with unmatched rows on both sides.
SELECT s.id, d.id FROM spans s FULL JOIN dims d ON d.k BETWEEN s.low AND s.high AND s.low > 60
