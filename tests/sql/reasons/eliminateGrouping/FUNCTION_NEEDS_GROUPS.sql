SELECT id, collect_list(name) AS names FROM items GROUP BY id
