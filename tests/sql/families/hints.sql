-- The user's hint decides, although a broadcast would be cheaper.
SELECT /*+ MERGE(b) */ a.id, b.id FROM facts a JOIN dims b ON a.k = b.k
