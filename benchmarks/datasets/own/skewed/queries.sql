-- Queries over the tables of tables.sql, in Spark's SQL. A line `-- name: what is hard` starts each.

-- q01: conditions that say the same thing three times
SELECT c_segment, count(*) FROM customer
WHERE c_country = 'C01' AND c_city = 'C01/1' AND c_zip BETWEEN 1010 AND 1019
GROUP BY c_segment

-- q02: a rare value of a column with four values, and a common one
SELECT p_category, sum(l_quantity)
FROM orders JOIN line ON l_order = o_id JOIN product ON p_id = l_product
WHERE o_status = 'failed'
GROUP BY p_category
UNION ALL
SELECT p_category, sum(l_quantity)
FROM orders JOIN line ON l_order = o_id JOIN product ON p_id = l_product
WHERE o_status = 'done' AND o_channel = 'web'
GROUP BY p_category

-- q03: heavy hitters on both sides of a join
SELECT c_country, count(*)
FROM orders JOIN event ON e_customer = o_customer JOIN customer ON c_id = o_customer
WHERE o_status = 'returned' AND e_kind = 'cart'
GROUP BY c_country

-- q04: null keys, and rows without a partner
SELECT p_category, e_kind, count(*)
FROM event LEFT JOIN product ON p_id = e_product AND p_price > 100
GROUP BY p_category, e_kind

-- q05: prefixes and patterns
SELECT c_segment, p_category, count(*)
FROM customer JOIN orders ON o_customer = c_id JOIN line ON l_order = o_id
  JOIN product ON p_id = l_product
WHERE c_email LIKE 'a.%' AND c_email LIKE '%@mail1' AND p_sku LIKE 'SKU-K3-%'
GROUP BY c_segment, p_category

-- q06: recent days, which are denser than old ones
SELECT p_brand, sum(l_quantity)
FROM orders JOIN line ON l_order = o_id JOIN product ON p_id = l_product
WHERE o_date >= DATE '2023-09-01' AND p_category IN ('K1', 'K2') AND l_discount IS NOT NULL
GROUP BY p_brand

-- q07: columns compared with each other
SELECT o_channel, count(*) FROM orders
WHERE o_ship_date > o_date AND o_ship_date <= date_add(o_date, 2) AND o_status <> 'returned'
GROUP BY o_channel

-- q08: who has not, and who has
SELECT c_country, count(*) FROM customer
WHERE NOT EXISTS (SELECT 1 FROM orders WHERE o_customer = c_id)
  AND c_id IN (SELECT e_customer FROM event WHERE e_kind <> 'view')
GROUP BY c_country

-- q09: groups of columns that depend on each other, and their totals
SELECT c_country, c_city, c_zip, c_segment, count(*)
FROM customer JOIN orders ON o_customer = c_id
GROUP BY ROLLUP (c_country, c_city, c_zip, c_segment)

-- q10: four joins, each with a condition that depends on another
SELECT c_city, p_brand, count(*)
FROM customer JOIN orders ON o_customer = c_id JOIN line ON l_order = o_id
  JOIN product ON p_id = l_product JOIN event ON e_customer = c_id AND e_product = p_id
WHERE c_segment = 'key' AND c_country = 'C01' AND o_channel = 'web' AND p_category = 'K1'
GROUP BY c_city, p_brand

-- q11: lists, alternatives and expressions
SELECT year(o_date), month(o_date), count(*)
FROM orders JOIN customer ON c_id = o_customer
WHERE c_country IN ('C05', 'C06', 'C07') AND (o_total > 500 OR o_status = 'failed')
  AND c_birth_year + 30 < 2000 AND upper(c_segment) <> 'HOME'
GROUP BY year(o_date), month(o_date)

-- q12: the first few of each group
SELECT o_customer, o_date, o_total FROM (
  SELECT *, row_number() OVER (PARTITION BY o_customer ORDER BY o_date DESC) AS n FROM orders
) WHERE n <= 2 AND o_channel = 'app'

-- q13: set operations
SELECT o_customer FROM orders WHERE o_status = 'open'
INTERSECT SELECT e_customer FROM event WHERE e_kind = 'complaint'
UNION SELECT c_id FROM customer WHERE c_birth_year IS NULL AND c_country = 'C03'
EXCEPT SELECT o_customer FROM orders WHERE o_status = 'failed'

-- q14: a range beside the key
SELECT o_channel, count(*)
FROM orders JOIN event ON e_customer = o_customer
  AND e_time BETWEEN o_date AND date_add(o_ship_date, 1)
GROUP BY o_channel

-- q15: a view whose other tables nobody asks for
SELECT e_kind, year(e_time), count(*), count(DISTINCT e_customer)
FROM event JOIN customer ON c_id = e_customer LEFT JOIN product ON p_id = e_product
GROUP BY e_kind, year(e_time)

-- q16: the customers who bought most, with the columns that one wants to see of them
SELECT c_id, c_email, c_city, c_segment, sum(o_total) AS total, count(*), max(o_date)
FROM customer JOIN orders ON o_customer = c_id
GROUP BY c_id, c_email, c_city, c_segment
ORDER BY total DESC, c_id LIMIT 100

-- q17: the largest orders, with what is known of their customers and of the products in them
SELECT o_id, o_total, o_date, c_email, c_city, l_quantity, p_sku
FROM orders LEFT JOIN customer ON c_id = o_customer LEFT JOIN line ON l_order = o_id
  LEFT JOIN product ON p_id = l_product
ORDER BY o_total DESC, o_id LIMIT 10

-- q18: customers by segment, made sure to be counted once
SELECT c_segment, count(*), count(DISTINCT c_zip), max(c_birth_year)
FROM (SELECT DISTINCT * FROM customer)
GROUP BY c_segment
