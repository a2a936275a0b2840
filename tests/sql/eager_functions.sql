-- Functions of both sides, with duplicates, nulls and no matches.
SELECT d.s, count(*) AS n, count(f.k) AS c, count(f.s, d.d) AS pairs, sum(f.k) AS ints, sum(d.k) AS others,
  avg(f.k) AS mean, avg(d.k) AS other_mean, min(f.day) AS first, max(d.day) AS last, min(f.day) AS low,
  max(f.day) AS high, bool_and(f.flag) AS every, bool_or(d.flag) AS some, avg(f.big) AS big,
  min(f.s) AS text, count(DISTINCT f.day) AS days
FROM facts f JOIN dupes d ON f.k % 9 = d.k GROUP BY d.s
