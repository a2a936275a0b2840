"""
Benchmarks and demo of Selinger: each module here is one command, ``python -m benchmarks.<name>``.

What commands share lives in rooms, each of which may use only those after it:
`estimates`, `runner`, `reporting`, `sessions`, `datasets`, and `paths` below all.
"""
