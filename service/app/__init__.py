"""Use cases: games, watching, sweeping, bots, and what callers see."""
