SELECT d.id, t.tag FROM dims d JOIN (SELECT k, tag FROM nested LATERAL VIEW explode(tags) x AS tag) t ON d.k = t.k
