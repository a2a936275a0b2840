-- The current date is a constant, and functions that Spark composes of others are replaced.
SELECT current_date() AS today, nvl(k, 0) AS k FROM facts WHERE EXISTS (SELECT 1 FROM dims)
