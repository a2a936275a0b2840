SELECT d.id, t.n, t.top FROM dims d JOIN LATERAL (SELECT count(*) AS n, max(b.id) AS top FROM dupes b WHERE b.k = d.k) t
