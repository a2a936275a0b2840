-- Lists are objects. Spark's hash table for them has 128 keys, Selinger's has as many as there is memory for.
SELECT id, collect_list(k) AS list FROM facts GROUP BY id
