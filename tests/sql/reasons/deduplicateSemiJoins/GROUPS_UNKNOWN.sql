SELECT id FROM dims WHERE concat(s, 'x') IN (SELECT concat(s, 'x') FROM facts)
