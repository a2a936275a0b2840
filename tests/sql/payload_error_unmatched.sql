-- The error is in a column that is computed below the join, and only of rows that find no partner.
SELECT f.id, f.v FROM (SELECT id, k, 10 / if(k % 2 = 0, 0, 1) AS v FROM facts) f
JOIN dims d ON f.k = d.k AND d.big % 2 = 1
