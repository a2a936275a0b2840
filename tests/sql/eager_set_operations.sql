SELECT f.s, d.flag FROM facts f JOIN dims d ON f.k = d.k
EXCEPT SELECT s, flag FROM dupes WHERE k < 5
INTERSECT SELECT d.s, f.flag FROM facts f JOIN dims d ON f.k = d.k
