-- A correlated scalar subquery becomes a join with groups, of which Selinger computes the used ones only.
-- set spark.selinger.aggregate.reduceInputMinGain=0
SELECT i.name FROM items i WHERE i.name = 'bike 0' AND i.id < (SELECT avg(s.ticket) FROM sales s WHERE s.item = i.id)
