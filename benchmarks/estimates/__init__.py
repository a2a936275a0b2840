"""Estimated rows against counted ones: ``python -m benchmarks.estimates``, and its arithmetic."""
