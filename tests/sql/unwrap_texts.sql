SELECT id, s FROM facts
WHERE substr(s, 1, 1) = 'A' OR left(s, 2) = 'b' OR substring(s, 1, 1) > 'a' AND NOT (left(s, 1) IN ('b', 'c'))
UNION ALL SELECT id, s FROM dims WHERE left(s, 1) <= 'B' OR left(s, 3) = '' OR left(s, 1) <=> 'ä'
