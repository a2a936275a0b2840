-- stream dims
SELECT id FROM dims WHERE k IN (SELECT a.k FROM facts a JOIN facts b ON a.k = b.k AND a.s <> b.s)
