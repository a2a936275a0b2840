SELECT o.id, t.n, t.top FROM dims o JOIN LATERAL (SELECT count(*) AS n, max(b.id) AS top FROM dupes b WHERE b.k = o.k) t
