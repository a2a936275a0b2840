SELECT d.s FROM dims d JOIN nulls n ON d.id = n.id
