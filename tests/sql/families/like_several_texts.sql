-- Spark runs a regular expression for patterns of several texts; Selinger searches the texts.
SELECT count(*) FROM facts WHERE s NOT LIKE '%A%b%'
