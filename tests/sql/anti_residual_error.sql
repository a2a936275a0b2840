-- As semi_residual_error; rows with a partner are those that do not return.
SELECT f.id FROM facts f LEFT ANTI JOIN dupes d ON f.k = d.k AND f.id / (d.id - 399) <> 0.5
