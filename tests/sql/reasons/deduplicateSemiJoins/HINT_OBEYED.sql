SELECT id FROM dims WHERE EXISTS (SELECT /*+ MERGE(facts) */ 1 FROM facts WHERE facts.k = dims.k)
