SELECT * FROM
  (SELECT avg(k) a, count(k) b, count(DISTINCT k) c FROM facts WHERE id < 900 AND d BETWEEN 1 AND 9) x,
  (SELECT avg(k) d, count(k) e, count(DISTINCT k) f FROM facts WHERE id > 800 AND (flag OR s = 'b')) y,
  (SELECT max(d) g, min(s) h, count(DISTINCT d) i FROM facts WHERE amount IS NULL) z
