-- NaN equals NaN, and -0.0 equals 0.0, in every operator.
SELECT a.id, b.id, a.d, b.d FROM dims a JOIN dupes b ON a.d = b.d
