SELECT d.id, CASE WHEN d.k > (SELECT avg(k) FROM facts WHERE flag) THEN (SELECT count(*) FROM facts WHERE k = 3)
                  ELSE (SELECT sum(k) FROM facts WHERE id < 0) END AS n
FROM dims d WHERE d.id < (SELECT max(k) FROM facts WHERE s = 'a')
