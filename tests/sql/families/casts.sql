-- Casts leave the columns of comparisons, so that the filter reaches the files; double case conversions become one.
SELECT upper(lower(s)) AS a, cast(id AS bigint) AS b FROM facts WHERE cast(k AS bigint) < 100
