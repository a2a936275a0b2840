-- Literals and repeated columns leave the keys of GROUP BY.
SELECT k, count(*) FROM facts GROUP BY k, 'a', current_date(), k
