-- let stats = SELECT * FROM selinger_export_stats('items')
-- run DROP VIEW items
-- run SELECT * FROM selinger_import_stats('${stats}')
SELECT * FROM sales JOIN items ON sales.item = items.id
