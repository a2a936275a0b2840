-- set spark.selinger.shareEstimates.enabled=true
-- stream dims
SELECT f.id FROM dims JOIN facts f ON dims.k = f.k
