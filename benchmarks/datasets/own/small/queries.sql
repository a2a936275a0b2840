-- q01: the rows of a key
SELECT * FROM t07 WHERE id = 4711

-- q02: some rows by a value
SELECT id, amount FROM t20 WHERE kind = 3 AND amount > 500

-- q03: groups
SELECT kind, count(*), sum(amount) FROM t07 GROUP BY kind

-- q04: groups that are filtered
SELECT name, max(day) FROM t07 WHERE kind < 4 GROUP BY name HAVING count(*) > 5

-- q05: the largest
SELECT id, amount FROM t20 ORDER BY amount DESC, id LIMIT 10

-- q06: a pattern
SELECT count(*) FROM t07 WHERE name LIKE 'n1%'

-- q07: different values
SELECT DISTINCT kind, name FROM t20

-- q08: a range of days
SELECT day, count(*) FROM t07 WHERE day BETWEEN DATE '2020-03-01' AND DATE '2020-04-30' GROUP BY day

-- q09: a rank
SELECT * FROM (SELECT id, kind, rank() OVER (PARTITION BY kind ORDER BY amount DESC) AS place FROM t07) ranked WHERE place <= 3

-- q10: two counts of different values
SELECT count(DISTINCT kind), count(DISTINCT name) FROM t07

-- q11: a union
SELECT kind, sum(amount) FROM (SELECT kind, amount FROM t07 UNION ALL SELECT kind, amount FROM t20) united GROUP BY kind

-- q12: a total
SELECT sum(amount), min(day), max(day) FROM t20

-- q13: 1 join
SELECT t07.kind, count(*), sum(t06.amount) FROM t06 JOIN t07 ON t06.next = t07.id WHERE t06.kind = 1 GROUP BY t07.kind

-- q14: 1 join
SELECT t20.kind, count(*), sum(t19.amount) FROM t19 JOIN t20 ON t19.next = t20.id WHERE t19.kind = 1 GROUP BY t20.kind

-- q15: 1 join
SELECT t34.kind, count(*), sum(t33.amount) FROM t33 JOIN t34 ON t33.next = t34.id GROUP BY t34.kind

-- q16: 2 joins
SELECT t08.kind, count(*), sum(t06.amount) FROM t06 JOIN t07 ON t06.next = t07.id JOIN t08 ON t07.next = t08.id WHERE t06.kind = 2 GROUP BY t08.kind

-- q17: 2 joins
SELECT t21.kind, count(*), sum(t19.amount) FROM t19 JOIN t20 ON t19.next = t20.id JOIN t21 ON t20.next = t21.id WHERE t19.kind = 2 GROUP BY t21.kind

-- q18: 2 joins
SELECT t35.kind, count(*), sum(t33.amount) FROM t33 JOIN t34 ON t33.next = t34.id JOIN t35 ON t34.next = t35.id GROUP BY t35.kind

-- q19: 3 joins
SELECT t09.kind, count(*), sum(t06.amount) FROM t06 JOIN t07 ON t06.next = t07.id JOIN t08 ON t07.next = t08.id JOIN t09 ON t08.next = t09.id WHERE t06.kind = 3 GROUP BY t09.kind

-- q20: 3 joins
SELECT t22.kind, count(*), sum(t19.amount) FROM t19 JOIN t20 ON t19.next = t20.id JOIN t21 ON t20.next = t21.id JOIN t22 ON t21.next = t22.id WHERE t19.kind = 3 GROUP BY t22.kind

-- q21: 3 joins
SELECT t36.kind, count(*), sum(t33.amount) FROM t33 JOIN t34 ON t33.next = t34.id JOIN t35 ON t34.next = t35.id JOIN t36 ON t35.next = t36.id GROUP BY t36.kind

-- q22: an outer join
SELECT t07.kind, count(t08.id) FROM t07 LEFT JOIN t08 ON t07.next = t08.id GROUP BY t07.kind

-- q23: IN
SELECT count(*) FROM t20 WHERE next IN (SELECT id FROM t21 WHERE kind = 2)

-- q24: NOT EXISTS
SELECT count(*) FROM t07 WHERE NOT EXISTS (SELECT 1 FROM t08 WHERE t08.id = t07.next AND t08.kind > 5)

-- q25: a chain of 8 tables
SELECT t07.kind, count(*), sum(t00.amount) FROM t00 JOIN t01 ON t00.next = t01.id JOIN t02 ON t01.next = t02.id JOIN t03 ON t02.next = t03.id JOIN t04 ON t03.next = t04.id JOIN t05 ON t04.next = t05.id JOIN t06 ON t05.next = t06.id JOIN t07 ON t06.next = t07.id GROUP BY t07.kind

-- q26: a chain of 8 tables with filters
SELECT t10.kind, count(*), sum(t03.amount) FROM t03 JOIN t04 ON t03.next = t04.id JOIN t05 ON t04.next = t05.id JOIN t06 ON t05.next = t06.id JOIN t07 ON t06.next = t07.id JOIN t08 ON t07.next = t08.id JOIN t09 ON t08.next = t09.id JOIN t10 ON t09.next = t10.id WHERE t03.kind < 5 AND t05.name LIKE 'n%' AND t09.kind <> 2 GROUP BY t10.kind

-- q27: a chain of 16 tables
SELECT t15.kind, count(*), sum(t00.amount) FROM t00 JOIN t01 ON t00.next = t01.id JOIN t02 ON t01.next = t02.id JOIN t03 ON t02.next = t03.id JOIN t04 ON t03.next = t04.id JOIN t05 ON t04.next = t05.id JOIN t06 ON t05.next = t06.id JOIN t07 ON t06.next = t07.id JOIN t08 ON t07.next = t08.id JOIN t09 ON t08.next = t09.id JOIN t10 ON t09.next = t10.id JOIN t11 ON t10.next = t11.id JOIN t12 ON t11.next = t12.id JOIN t13 ON t12.next = t13.id JOIN t14 ON t13.next = t14.id JOIN t15 ON t14.next = t15.id GROUP BY t15.kind

-- q28: a chain of 16 tables with filters
SELECT t18.kind, count(*), sum(t03.amount) FROM t03 JOIN t04 ON t03.next = t04.id JOIN t05 ON t04.next = t05.id JOIN t06 ON t05.next = t06.id JOIN t07 ON t06.next = t07.id JOIN t08 ON t07.next = t08.id JOIN t09 ON t08.next = t09.id JOIN t10 ON t09.next = t10.id JOIN t11 ON t10.next = t11.id JOIN t12 ON t11.next = t12.id JOIN t13 ON t12.next = t13.id JOIN t14 ON t13.next = t14.id JOIN t15 ON t14.next = t15.id JOIN t16 ON t15.next = t16.id JOIN t17 ON t16.next = t17.id JOIN t18 ON t17.next = t18.id WHERE t03.kind < 5 AND t05.name LIKE 'n%' AND t09.kind <> 2 GROUP BY t18.kind

-- q29: a chain of 32 tables
SELECT t31.kind, count(*), sum(t00.amount) FROM t00 JOIN t01 ON t00.next = t01.id JOIN t02 ON t01.next = t02.id JOIN t03 ON t02.next = t03.id JOIN t04 ON t03.next = t04.id JOIN t05 ON t04.next = t05.id JOIN t06 ON t05.next = t06.id JOIN t07 ON t06.next = t07.id JOIN t08 ON t07.next = t08.id JOIN t09 ON t08.next = t09.id JOIN t10 ON t09.next = t10.id JOIN t11 ON t10.next = t11.id JOIN t12 ON t11.next = t12.id JOIN t13 ON t12.next = t13.id JOIN t14 ON t13.next = t14.id JOIN t15 ON t14.next = t15.id JOIN t16 ON t15.next = t16.id JOIN t17 ON t16.next = t17.id JOIN t18 ON t17.next = t18.id JOIN t19 ON t18.next = t19.id JOIN t20 ON t19.next = t20.id JOIN t21 ON t20.next = t21.id JOIN t22 ON t21.next = t22.id JOIN t23 ON t22.next = t23.id JOIN t24 ON t23.next = t24.id JOIN t25 ON t24.next = t25.id JOIN t26 ON t25.next = t26.id JOIN t27 ON t26.next = t27.id JOIN t28 ON t27.next = t28.id JOIN t29 ON t28.next = t29.id JOIN t30 ON t29.next = t30.id JOIN t31 ON t30.next = t31.id GROUP BY t31.kind

-- q30: a chain of 32 tables with filters
SELECT t34.kind, count(*), sum(t03.amount) FROM t03 JOIN t04 ON t03.next = t04.id JOIN t05 ON t04.next = t05.id JOIN t06 ON t05.next = t06.id JOIN t07 ON t06.next = t07.id JOIN t08 ON t07.next = t08.id JOIN t09 ON t08.next = t09.id JOIN t10 ON t09.next = t10.id JOIN t11 ON t10.next = t11.id JOIN t12 ON t11.next = t12.id JOIN t13 ON t12.next = t13.id JOIN t14 ON t13.next = t14.id JOIN t15 ON t14.next = t15.id JOIN t16 ON t15.next = t16.id JOIN t17 ON t16.next = t17.id JOIN t18 ON t17.next = t18.id JOIN t19 ON t18.next = t19.id JOIN t20 ON t19.next = t20.id JOIN t21 ON t20.next = t21.id JOIN t22 ON t21.next = t22.id JOIN t23 ON t22.next = t23.id JOIN t24 ON t23.next = t24.id JOIN t25 ON t24.next = t25.id JOIN t26 ON t25.next = t26.id JOIN t27 ON t26.next = t27.id JOIN t28 ON t27.next = t28.id JOIN t29 ON t28.next = t29.id JOIN t30 ON t29.next = t30.id JOIN t31 ON t30.next = t31.id JOIN t32 ON t31.next = t32.id JOIN t33 ON t32.next = t33.id JOIN t34 ON t33.next = t34.id WHERE t03.kind < 5 AND t05.name LIKE 'n%' AND t09.kind <> 2 GROUP BY t34.kind

-- q31: a chain of 64 tables
SELECT t63.kind, count(*), sum(t00.amount) FROM t00 JOIN t01 ON t00.next = t01.id JOIN t02 ON t01.next = t02.id JOIN t03 ON t02.next = t03.id JOIN t04 ON t03.next = t04.id JOIN t05 ON t04.next = t05.id JOIN t06 ON t05.next = t06.id JOIN t07 ON t06.next = t07.id JOIN t08 ON t07.next = t08.id JOIN t09 ON t08.next = t09.id JOIN t10 ON t09.next = t10.id JOIN t11 ON t10.next = t11.id JOIN t12 ON t11.next = t12.id JOIN t13 ON t12.next = t13.id JOIN t14 ON t13.next = t14.id JOIN t15 ON t14.next = t15.id JOIN t16 ON t15.next = t16.id JOIN t17 ON t16.next = t17.id JOIN t18 ON t17.next = t18.id JOIN t19 ON t18.next = t19.id JOIN t20 ON t19.next = t20.id JOIN t21 ON t20.next = t21.id JOIN t22 ON t21.next = t22.id JOIN t23 ON t22.next = t23.id JOIN t24 ON t23.next = t24.id JOIN t25 ON t24.next = t25.id JOIN t26 ON t25.next = t26.id JOIN t27 ON t26.next = t27.id JOIN t28 ON t27.next = t28.id JOIN t29 ON t28.next = t29.id JOIN t30 ON t29.next = t30.id JOIN t31 ON t30.next = t31.id JOIN t32 ON t31.next = t32.id JOIN t33 ON t32.next = t33.id JOIN t34 ON t33.next = t34.id JOIN t35 ON t34.next = t35.id JOIN t36 ON t35.next = t36.id JOIN t37 ON t36.next = t37.id JOIN t38 ON t37.next = t38.id JOIN t39 ON t38.next = t39.id JOIN t40 ON t39.next = t40.id JOIN t41 ON t40.next = t41.id JOIN t42 ON t41.next = t42.id JOIN t43 ON t42.next = t43.id JOIN t44 ON t43.next = t44.id JOIN t45 ON t44.next = t45.id JOIN t46 ON t45.next = t46.id JOIN t47 ON t46.next = t47.id JOIN t48 ON t47.next = t48.id JOIN t49 ON t48.next = t49.id JOIN t50 ON t49.next = t50.id JOIN t51 ON t50.next = t51.id JOIN t52 ON t51.next = t52.id JOIN t53 ON t52.next = t53.id JOIN t54 ON t53.next = t54.id JOIN t55 ON t54.next = t55.id JOIN t56 ON t55.next = t56.id JOIN t57 ON t56.next = t57.id JOIN t58 ON t57.next = t58.id JOIN t59 ON t58.next = t59.id JOIN t60 ON t59.next = t60.id JOIN t61 ON t60.next = t61.id JOIN t62 ON t61.next = t62.id JOIN t63 ON t62.next = t63.id GROUP BY t63.kind

-- q32: a chain of 64 tables with filters
SELECT t02.kind, count(*), sum(t03.amount) FROM t03 JOIN t04 ON t03.next = t04.id JOIN t05 ON t04.next = t05.id JOIN t06 ON t05.next = t06.id JOIN t07 ON t06.next = t07.id JOIN t08 ON t07.next = t08.id JOIN t09 ON t08.next = t09.id JOIN t10 ON t09.next = t10.id JOIN t11 ON t10.next = t11.id JOIN t12 ON t11.next = t12.id JOIN t13 ON t12.next = t13.id JOIN t14 ON t13.next = t14.id JOIN t15 ON t14.next = t15.id JOIN t16 ON t15.next = t16.id JOIN t17 ON t16.next = t17.id JOIN t18 ON t17.next = t18.id JOIN t19 ON t18.next = t19.id JOIN t20 ON t19.next = t20.id JOIN t21 ON t20.next = t21.id JOIN t22 ON t21.next = t22.id JOIN t23 ON t22.next = t23.id JOIN t24 ON t23.next = t24.id JOIN t25 ON t24.next = t25.id JOIN t26 ON t25.next = t26.id JOIN t27 ON t26.next = t27.id JOIN t28 ON t27.next = t28.id JOIN t29 ON t28.next = t29.id JOIN t30 ON t29.next = t30.id JOIN t31 ON t30.next = t31.id JOIN t32 ON t31.next = t32.id JOIN t33 ON t32.next = t33.id JOIN t34 ON t33.next = t34.id JOIN t35 ON t34.next = t35.id JOIN t36 ON t35.next = t36.id JOIN t37 ON t36.next = t37.id JOIN t38 ON t37.next = t38.id JOIN t39 ON t38.next = t39.id JOIN t40 ON t39.next = t40.id JOIN t41 ON t40.next = t41.id JOIN t42 ON t41.next = t42.id JOIN t43 ON t42.next = t43.id JOIN t44 ON t43.next = t44.id JOIN t45 ON t44.next = t45.id JOIN t46 ON t45.next = t46.id JOIN t47 ON t46.next = t47.id JOIN t48 ON t47.next = t48.id JOIN t49 ON t48.next = t49.id JOIN t50 ON t49.next = t50.id JOIN t51 ON t50.next = t51.id JOIN t52 ON t51.next = t52.id JOIN t53 ON t52.next = t53.id JOIN t54 ON t53.next = t54.id JOIN t55 ON t54.next = t55.id JOIN t56 ON t55.next = t56.id JOIN t57 ON t56.next = t57.id JOIN t58 ON t57.next = t58.id JOIN t59 ON t58.next = t59.id JOIN t60 ON t59.next = t60.id JOIN t61 ON t60.next = t61.id JOIN t62 ON t61.next = t62.id JOIN t63 ON t62.next = t63.id JOIN t00 ON t63.next = t00.id JOIN t01 ON t00.next = t01.id JOIN t02 ON t01.next = t02.id WHERE t03.kind < 5 AND t05.name LIKE 'n%' AND t09.kind <> 2 GROUP BY t02.kind
