"""
Spark sessions to measure: their settings, their processes, and what is read of their plans.

Nothing here knows queries of a suite, or compares one session with another.
"""
