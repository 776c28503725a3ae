"""Stores of games: one protocol, one store in memory and one on Redis."""
