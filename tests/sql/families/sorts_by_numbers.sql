-- A window sorts by two keys, which Selinger makes one number of.
SELECT id, k, sum(big) OVER (PARTITION BY k ORDER BY id) AS running FROM facts
