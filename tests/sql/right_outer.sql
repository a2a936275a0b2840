SELECT f.id, d.id, d.label FROM facts f RIGHT JOIN (SELECT id, k, upper(s) AS label FROM dims) d ON f.k = d.k AND f.flag
