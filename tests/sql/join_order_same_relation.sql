-- Two columns of one relation in one equivalence class.
SELECT s.id, d.id AS d_id, f.id AS f_id
FROM spans s JOIN dims d ON s.low = d.k AND s.high = d.k JOIN facts f ON d.k = f.k
