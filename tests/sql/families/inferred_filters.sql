-- A filter on a join key is inferred for the other side; keys cannot be null; exploded arrays are not empty.
SELECT a.id, b.tag FROM facts a JOIN (SELECT k, tag FROM nested LATERAL VIEW explode(tags) t AS tag) b ON a.k = b.k
WHERE a.k > 20
