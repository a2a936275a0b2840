-- A condition of an outer join beside its key decides about padding, not about rows.
SELECT f.id, d.id, d.s FROM facts f LEFT JOIN dims d ON f.k = d.k AND f.d > d.d
