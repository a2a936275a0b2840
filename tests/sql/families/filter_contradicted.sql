-- No id is larger than 1000, which the footers say, but the plan reads the table.
SELECT id FROM dims WHERE id > 1000
