-- A GROUP BY below a coarser one is left out.
SELECT flag, max(k) FROM (SELECT flag, k FROM facts GROUP BY flag, k) GROUP BY flag
