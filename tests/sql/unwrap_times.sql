SELECT id, at FROM facts
WHERE year(at) = 1971 AND month(at) = 2
   OR cast(at AS date) IN (date'1970-03-01', date'1970-03-02', date'1972-02-29')
   OR (year(at) <=> 1972 AND at < timestamp'1972-04-01')
   OR date_trunc('month', at) = timestamp'1970-07-01'
