-- Maps can be carried, not compared.
SELECT d.id, n.attributes, n.tags, n.point.y FROM dims d LEFT JOIN nested n ON d.k = n.k
