SELECT id FROM dims WHERE EXISTS (SELECT 1 FROM facts WHERE facts.k = dims.k AND 1 / facts.big > dims.big)
