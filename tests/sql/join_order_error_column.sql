-- As payload_error_unmatched, with an order to choose.
SELECT f.id, f.v FROM (SELECT id, k, 10 / if(k % 2 = 0, 0, 1) AS v FROM facts) f
JOIN dupes u ON f.k = u.k JOIN dims d ON f.k = d.k AND d.big % 2 = 1
