"""Random queries under random settings: the same answer as stock Spark's, and as DuckDB's.

``python -m tests.fuzz --queries 1000 --seed 1``, or ``make fuzz N=1000 SEED=1``. One case is one
query, run once by stock Spark and several times by Selinger, each time with other settings. The
seed and the index of a case give the same tables, query and settings again. The parts:

===========  ==================================================================================
`sqltypes`   types and literals
`data`       random tables, and the files that they are written to
`tree`       queries as trees, which are printed for Spark and for DuckDB
`grammar`    random trees
`options`    random settings
`engines`    sessions of Spark and DuckDB; what a query answers there
`verdict`    whether two answers are the same
`campaign`   many cases, what they found and what they cost
`shrink`     a failure made small
`kept`       a small failure as a file of SQL, and the test that runs it again
===========  ==================================================================================
"""
