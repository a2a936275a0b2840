SELECT a.s, b.flag, sum(a.k), avg(b.k), count(*) FROM facts a LEFT JOIN dims b ON a.k = b.k GROUP BY ROLLUP (a.s, b.flag) HAVING grouping(b.flag) = 1 OR count(*) > 5
