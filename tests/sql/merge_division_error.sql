SELECT * FROM (SELECT sum(10 / k) AS a FROM facts WHERE k > 0) x,
  (SELECT sum(k) AS b FROM facts WHERE k = 0) y, (SELECT sum(k) AS c FROM facts WHERE flag) z
