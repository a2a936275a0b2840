-- stream facts
SELECT f.id, d.s FROM facts f JOIN (SELECT DISTINCT id, s FROM dims) d ON f.k = d.id
