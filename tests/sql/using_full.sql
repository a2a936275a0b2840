SELECT k, s, a.id, b.id FROM facts a FULL JOIN dupes b USING (k, s)
