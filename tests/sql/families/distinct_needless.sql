-- DISTINCT changes no maximum.
SELECT k, max(DISTINCT id) FROM facts GROUP BY k
