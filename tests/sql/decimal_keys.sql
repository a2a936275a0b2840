-- Keys at the limits of decimal(38,10), and of another scale.
SELECT a.id, b.id, a.amount FROM dims a JOIN dupes b ON a.amount = b.amount WHERE b.amount <> 3
