SELECT * FROM customers c WHERE EXISTS
(SELECT * FROM (SELECT id AS customer, id AS item FROM range(2500000)) s
 WHERE s.customer = c.id AND s.item <> c.id)
