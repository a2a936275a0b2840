-- A shop whose data is as uneven as that of users: a few customers, products and cities have most
-- of the rows (Zipf), columns depend on each other, keys are null, recent days are denser.
-- DuckDB's SQL; {scale} is the scale factor. Every value is a function of its row's number.

CREATE MACRO unit(salt, i) AS md5_number_lower(concat(salt, ':', i)) / 18446744073709551616.0;
-- Ranks 1 to n, rank r about as often as r to the power of -s (s other than 1).
CREATE MACRO rank_of(u, n, s) AS
  least(n, floor(pow(1 + u * (pow(n, 1 - s) - 1), 1 / (1 - s)))::BIGINT);
-- Frequent values lie anywhere among the others.
CREATE MACRO scattered(r, n) AS (r * 7919) % n + 1;

CREATE TABLE customer AS
SELECT
  c_id, c_country, c_city, c_zip, c_email, c_segment, c_birth_year
FROM (
  SELECT
    i + 1 AS c_id,
    rank_of(unit('country', i), 40, 1.2) AS country,
    rank_of(unit('city', i), 25, 0.8) AS city,
    concat('C', lpad(country::VARCHAR, 2, '0')) AS c_country,
    -- A city lies in one country, a zip code in one city.
    concat(c_country, '/', city) AS c_city,
    (country * 1000 + city * 10 + i % 10)::INTEGER AS c_zip,
    concat(chr((96 + rank_of(unit('letter', i), 26, 0.7))::INTEGER), '.', i, '@mail',
      rank_of(unit('mail', i), 50, 1.3)) AS c_email,
    CASE WHEN country <= 2 AND unit('segment', i) < 0.3 THEN 'key'
      WHEN unit('segment', i) < 0.8 THEN 'small' ELSE 'home' END AS c_segment,
    CASE WHEN unit('birth', i) > 0.3
      THEN (1940 + 65 * sqrt(unit('year', i)))::INTEGER END AS c_birth_year
  FROM range((20000 * {scale})::BIGINT) t(i)
);

CREATE TABLE product AS
SELECT
  i + 1 AS p_id,
  concat('K', rank_of(unit('category', i), 12, 0.9)) AS p_category,
  -- A brand sells in one category.
  concat(p_category, '-', rank_of(unit('brand', i), 20, 0.9)) AS p_brand,
  concat('SKU-', p_brand, '-', i) AS p_sku,
  round(exp(1 + 5 * unit('price', i)), 2)::DOUBLE AS p_price
FROM range((4000 * {scale})::BIGINT) t(i);

CREATE TABLE orders AS
SELECT
  i + 1 AS o_id,
  CASE WHEN unit('guest', i) > 0.08 THEN scattered(
    rank_of(unit('customer', i), (20000 * {scale})::BIGINT, 0.8), (20000 * {scale})::BIGINT
  ) END AS o_customer,
  -- Rows come in the order of their days, and there are more of them every day.
  DATE '2020-01-01' + (1500 * sqrt(i / (150000 * {scale})))::INTEGER AS o_date,
  CASE WHEN unit('status', i) < 0.88 THEN 'done' WHEN unit('status', i) < 0.95 THEN 'returned'
    WHEN unit('status', i) < 0.99 THEN 'open' ELSE 'failed' END AS o_status,
  -- Open orders are not shipped; most others are within a few days.
  CASE WHEN o_status <> 'open'
    THEN o_date + rank_of(unit('shipped', i), 60, 1.5)::INTEGER END AS o_ship_date,
  CASE WHEN o_status = 'returned' OR unit('channel', i) < 0.6 THEN 'web'
    WHEN unit('channel', i) < 0.9 THEN 'app' ELSE 'shop' END AS o_channel,
  round(exp(2 + 5 * unit('total', i)), 2)::DECIMAL(10, 2) AS o_total
FROM range((150000 * {scale})::BIGINT) t(i);

CREATE TABLE line AS
SELECT
  scattered(
    rank_of(unit('order', i), (150000 * {scale})::BIGINT, 0.3), (150000 * {scale})::BIGINT
  ) AS l_order,
  scattered(
    rank_of(unit('product', i), (4000 * {scale})::BIGINT, 0.9), (4000 * {scale})::BIGINT
  ) AS l_product,
  rank_of(unit('quantity', i), 100, 1.5)::INTEGER AS l_quantity,
  CASE WHEN unit('discount', i) > 0.6
    THEN (5 * rank_of(unit('percent', i), 10, 0.9))::INTEGER END AS l_discount
FROM range((450000 * {scale})::BIGINT) t(i);

CREATE TABLE event AS
SELECT
  scattered(
    rank_of(unit('visitor', i), (20000 * {scale})::BIGINT, 0.8), (20000 * {scale})::BIGINT
  ) AS e_customer,
  CASE WHEN unit('kind', i) < 0.9 THEN 'view' WHEN unit('kind', i) < 0.995 THEN 'cart'
    ELSE 'complaint' END AS e_kind,
  CASE WHEN unit('seen', i) > 0.5 THEN scattered(
    rank_of(unit('what', i), (4000 * {scale})::BIGINT, 0.9), (4000 * {scale})::BIGINT
  ) END AS e_product,
  TIMESTAMP '2020-01-01 00:00:00' + to_seconds((1500 * 86400 * sqrt(unit('time', i)))::BIGINT)
    AS e_time
FROM range((100000 * {scale})::BIGINT) t(i);
