SELECT d.s, f.flag, count(*), min(f.day) FROM facts f JOIN dims d ON f.k = d.k GROUP BY CUBE (d.s, f.flag)
