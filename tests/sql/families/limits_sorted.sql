-- ORDER BY with LIMIT is not pushed to the preserved side of an outer join.
-- set spark.selinger.sort.earlyTopNMinGain=0
SELECT a.id, b.id AS other FROM dims a LEFT JOIN items b ON a.id = b.id ORDER BY a.id LIMIT 5
