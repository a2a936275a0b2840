SELECT * FROM (SELECT k, s, id AS left_id FROM dims) NATURAL JOIN (SELECT k, s, id AS right_id FROM dupes)
