"""Load tests, benchmarks, and the positions that they use."""
