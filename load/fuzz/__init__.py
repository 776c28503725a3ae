"""Hostile bytes: coverage-guided fuzzing, mutated calls at all listeners, and the dearest requests (docs/reliability.md)."""
