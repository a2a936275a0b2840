-- stream dims
SELECT d.id FROM dims d JOIN facts f ON f.k = d.k WHERE f.k IN (SELECT k FROM dupes)
