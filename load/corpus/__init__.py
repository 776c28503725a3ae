"""Positions, turns and games that benchmarks and load tests replay."""
