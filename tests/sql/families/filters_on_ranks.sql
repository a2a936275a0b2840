-- A filter on a rank becomes a limit within each partition, which Selinger applies before the sort.
SELECT * FROM (
  SELECT id, k, rank() OVER (PARTITION BY flag ORDER BY big DESC) AS place FROM facts
) WHERE place <= 10
