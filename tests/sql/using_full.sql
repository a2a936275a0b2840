SELECT k, s, a.id, b.id FROM dims a FULL JOIN dupes b USING (k, s)
