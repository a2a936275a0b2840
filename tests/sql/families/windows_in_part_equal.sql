-- Windows over partitions of which one is finer than the other are two windows.
SELECT id, sum(id) OVER (PARTITION BY flag) AS a, sum(id) OVER (PARTITION BY flag, s) AS b FROM dims
