SELECT a.id, b.id FROM facts a JOIN facts b ON a.day = date_add(cast(b.at AS date), 10958) WHERE a.id < 200
