-- A cast of text to a number: an error with ANSI, null without.
SELECT a.id, b.id FROM dims a JOIN dupes b ON a.s = b.k
