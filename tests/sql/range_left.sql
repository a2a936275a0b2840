SELECT f.id, s.id FROM facts f LEFT JOIN spans s ON f.k > s.high AND f.id < s.low
