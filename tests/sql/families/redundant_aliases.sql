-- Aliases that rename nothing are left out, as are fields that are taken out of new structs, arrays and maps.
SELECT k AS k, x, y, z FROM (
  SELECT k AS k, named_struct('a', id, 'b', s).a AS x, array(k, id)[0] AS y, map('x', k)['x'] AS z FROM facts
)
