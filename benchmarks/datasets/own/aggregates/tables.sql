-- Ten million rows at scale factor 1. Keys of 10^3, 10^5, 5 * 10^5 and 10^7 values, texts that depend on
-- a key, decimals of the widths that prices have, and columns of few values for grouping sets.

CREATE TABLE facts AS
SELECT
  i AS id,
  (hash(i) % 1000)::BIGINT AS k3,
  (hash(i) % 100000)::BIGINT AS k5,
  (hash(i) % 500000)::BIGINT AS k55,
  'name of ' || (hash(i) % 1000) AS s3,
  'name of ' || (hash(i) % 100000) AS s5,
  'name of ' || (hash(i) % 500000) AS s55,
  'name of ' || i AS s7,
  (hash(i + 1) % 20000 / 100)::DECIMAL(7, 2) AS price,
  (hash(i + 2) % 20000 / 100)::DECIMAL(7, 2) AS cost,
  (hash(i + 3) % 1000 / 100)::DECIMAL(7, 2) AS discount,
  (hash(i + 4) % 1000000 / 100)::DECIMAL(12, 2) AS extended,
  (hash(i + 5) % 11 / 100)::DECIMAL(12, 2) AS rate,
  (hash(i + 6) % 100)::INTEGER AS quantity,
  'region ' || (hash(i % 100003) % 5) AS region,
  'country ' || (hash(i % 100003) % 60) AS country,
  'city ' || (hash(i % 100003) % 900) AS city,
  2000 + (i // 500000) % 5 AS year,
  1 + (i // 100000) % 12 AS month,
  (hash(i + 7) % 10)::INTEGER AS channel
FROM range((10000000 * {scale})::BIGINT) AS t(i);

CREATE TABLE returns AS
SELECT
  (hash(i + 8) % 100000)::BIGINT AS k5,
  (hash(i + 9) % 20000 / 100)::DECIMAL(7, 2) AS refund
FROM range((1000000 * {scale})::BIGINT) AS t(i);
