-- How long the lists are is not known: ten elements are expected.
SELECT * FROM (SELECT k, tag FROM nested LATERAL VIEW explode(sequence(1, 2500)) t AS tag) n
WHERE EXISTS (SELECT * FROM (SELECT id, id AS item FROM range(2500000)) s WHERE s.id = n.tag)
