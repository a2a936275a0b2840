SELECT a.id, b.id FROM facts a JOIN dims b ON a.day = b.day AND a.flag = b.flag WHERE a.id < 500
