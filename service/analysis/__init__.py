"""Exact analysis: queries, and the pool of worker processes that answers them."""
