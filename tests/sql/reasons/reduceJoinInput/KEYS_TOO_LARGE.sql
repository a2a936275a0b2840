-- set spark.selinger.join.broadcastMaxBytes=200000
-- How long the lists are is not known: ten elements are expected.
SELECT * FROM (SELECT tag FROM nested LATERAL VIEW explode(sequence(1, 200)) t AS tag) n
WHERE EXISTS (SELECT * FROM (SELECT id, id AS item FROM range(2500000)) s WHERE s.id = n.tag)
