"""Hostile bytes: coverage-guided fuzzing, and mutated calls at all listeners and the edge (docs/reliability.md)."""
