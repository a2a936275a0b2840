SELECT k FROM dims WHERE EXISTS (SELECT 1 FROM facts WHERE facts.id = dims.id)
