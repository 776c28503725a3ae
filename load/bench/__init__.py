"""Benchmarks: python -m load.bench."""
