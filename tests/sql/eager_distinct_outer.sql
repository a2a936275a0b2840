-- Rows that the join fills with nulls are no duplicates of rows whose values are null.
SELECT DISTINCT d.flag, f.s, f.k FROM dims d LEFT JOIN facts f ON d.big = f.big AND d.flag
