"""Exact analysis: questions, and the pool of worker processes that answers them."""
