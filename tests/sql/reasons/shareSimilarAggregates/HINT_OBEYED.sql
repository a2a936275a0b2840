-- set spark.selinger.eliminateJoins.enabled=false
-- set spark.selinger.eliminateGrouping.enabled=false
SELECT a.item, a.n, b.n FROM (SELECT /*+ MERGE(items) */ item, customer, count(*) AS n FROM sales JOIN items ON item = id WHERE customer = 1 GROUP BY item, customer) a JOIN (SELECT item, customer, count(*) AS n FROM sales JOIN items ON item = id WHERE customer = 2 GROUP BY item, customer) b ON a.item = b.item
