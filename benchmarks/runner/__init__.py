"""
Measuring queries on several sessions in turn, and judging whether their answers agree.

No output formats: what is found goes to `benchmarks.reporting`.
"""
