SELECT DISTINCT f.s, d.s AS t, f.day FROM facts f JOIN dims d ON f.k = d.k
