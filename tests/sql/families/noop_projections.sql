-- A projection that takes all columns of a table is left out.
SELECT * FROM (SELECT id, low, high FROM spans) WHERE low < 5
