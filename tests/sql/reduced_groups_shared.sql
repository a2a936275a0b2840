-- One aggregation in two places, each of which needs other groups.
WITH t AS (SELECT k, flag, sum(id) AS total, count(DISTINCT s) AS texts FROM facts GROUP BY k, flag)
SELECT a.k, a.total, a.texts, b.total AS other, b.texts AS others FROM t a JOIN dims d ON a.k = d.k AND d.id < 9
JOIN t b ON a.texts = b.texts AND a.flag <=> b.flag JOIN dims e ON b.k = e.k AND e.id > 140
