SELECT f.s, count(*) FROM facts f JOIN dims d ON f.d = d.d GROUP BY f.s
