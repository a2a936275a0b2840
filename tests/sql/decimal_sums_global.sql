-- Without groups, over some rows and over none.
SELECT sum(a.m), avg(a.m), sum(a.m * b.m), sum(a.amount), sum(n.m), avg(n.m)
FROM (SELECT *, cast(id AS decimal(14, 2)) AS m FROM facts) a
JOIN (SELECT *, cast(id AS decimal(10, 2)) AS m FROM dims) b ON a.k = b.k
LEFT JOIN (SELECT *, cast(id AS decimal(12, 2)) AS m FROM nothing) n ON a.k = n.k
