-- The error is in the output, and only of rows that find a partner.
SELECT f.id, 1 / (d.id - d.id) FROM facts f JOIN dims d ON f.k = d.k
