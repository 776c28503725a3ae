"""Where games are kept: one protocol, a store in memory and one on Redis."""
