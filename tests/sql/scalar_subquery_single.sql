-- At most one row for each, or an error: a join type of its own.
SELECT d.id, (SELECT s.low FROM spans s WHERE s.id = d.id) FROM dims d
