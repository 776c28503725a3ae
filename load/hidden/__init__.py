"""Pairs of games that differ only in hidden tiles: whatever a viewer can get of both is compared (`make secrets`)."""
