SELECT a.k, b.k, a.point FROM nested a JOIN nested b ON a.point = b.point AND a.k = b.k + 1
