-- Spark copies each row for each grouping set. Selinger computes the coarser sets from the finer ones.
SELECT flag, s, count(*) FROM facts GROUP BY ROLLUP (flag, s)
