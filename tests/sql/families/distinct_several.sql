-- Two DISTINCT copy each row for each of them.
SELECT k, count(DISTINCT id), count(DISTINCT big) FROM facts GROUP BY k
