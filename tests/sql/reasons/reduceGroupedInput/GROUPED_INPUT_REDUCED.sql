-- set spark.selinger.aggregate.reduceInputMinGain=0
SELECT i.name, s.a FROM items i JOIN (SELECT item, avg(amount) AS a FROM sales GROUP BY item) s ON i.id = s.item WHERE i.name = 'b'
