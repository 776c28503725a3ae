"""Use cases: games, watching, sweeping, bots, and the views that callers get."""
