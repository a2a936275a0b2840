SELECT count(cast(f.s AS int)), count(cast(d.s AS int)) FROM facts f JOIN dims d ON f.k = d.k
