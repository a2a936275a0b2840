-- stream dims
SELECT f.id FROM dims JOIN facts f ON dims.k = f.k WHERE f.id > (SELECT min(id) FROM facts WHERE k = 1) AND f.id < (SELECT max(id) FROM facts WHERE k = 2)
