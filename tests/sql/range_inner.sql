SELECT f.id, s.id FROM facts f JOIN spans s ON f.k BETWEEN s.low AND s.high WHERE f.id < 300
