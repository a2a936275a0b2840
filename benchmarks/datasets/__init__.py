"""
Data sets and queries: TPC-DS and TPC-H from DuckDB's extensions, and data of our own.

No Spark session and no measuring here.
"""
