"""Hostile bytes: coverage-guided fuzzing, and mutated calls at all listeners (docs/reliability.md)."""
