"""Benchmarks and demo of Selinger: data, queries, sessions, measuring, reporting."""
