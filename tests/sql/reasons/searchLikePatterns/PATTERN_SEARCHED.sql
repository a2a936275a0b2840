SELECT id FROM facts WHERE s NOT LIKE '%A%b%'
