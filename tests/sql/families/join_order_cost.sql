-- Spark orders joins by cost where it is told to and every table has been analysed. Selinger then leaves the order.
-- set spark.sql.cbo.enabled=true
-- set spark.sql.cbo.joinReorder.enabled=true
SELECT count(*) FROM range(20000) a JOIN range(9000) b ON a.id = b.id JOIN range(10) c ON a.id = c.id
