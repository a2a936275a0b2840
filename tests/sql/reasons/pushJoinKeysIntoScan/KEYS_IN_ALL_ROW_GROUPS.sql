-- All keys of the large side are in the small one.
SELECT /*+ BROADCAST(b) */ a.k, b.s FROM facts a JOIN facts b ON a.k = b.k WHERE a.id < 100
