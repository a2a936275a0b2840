-- A table joined with itself finds the keys that have rows with different values.
-- set spark.selinger.merge.minGain=0
SELECT id FROM dims WHERE k IN (SELECT a.k FROM facts a JOIN facts b ON a.k = b.k AND a.day <> b.day)
