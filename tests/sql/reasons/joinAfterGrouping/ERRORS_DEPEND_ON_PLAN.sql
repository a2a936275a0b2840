SELECT i.id, i.name, sum(int(s.s)) AS total FROM facts s JOIN items i ON s.k = i.id GROUP BY i.id, i.name
