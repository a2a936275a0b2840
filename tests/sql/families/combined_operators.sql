-- Neighbouring projections, filters, unions, repartitions and windows become one.
SELECT x + 1 AS y, s FROM (SELECT id + 1 AS x, s FROM dims WHERE id > 3) WHERE x % 7 < 5
UNION ALL (SELECT id, s FROM dupes UNION ALL SELECT /*+ REPARTITION(3) */ * FROM (SELECT /*+ REPARTITION(5) */ id, s FROM nulls))
