SELECT /*+ BROADCAST(b) */ a.k FROM facts a JOIN range(300000) b ON a.id = b.id
