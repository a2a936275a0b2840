-- set spark.selinger.eliminateJoins.enabled=false
SELECT a.item, a.n, b.n AS total FROM (SELECT /*+ MERGE(items) */ item, count(*) AS n FROM sales JOIN items ON item = id GROUP BY item) a CROSS JOIN (SELECT count(*) AS n FROM sales JOIN items ON item = id) b
