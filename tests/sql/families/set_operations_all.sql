-- INTERSECT ALL and EXCEPT ALL count the rows of both sides and repeat them.
(SELECT k FROM facts INTERSECT ALL SELECT k FROM dupes) UNION ALL (SELECT k FROM dims EXCEPT ALL SELECT k FROM dupes)
