"""Judges many plays by one ruleset, quickly: precomputed melds and tile counts in place of the plain rules."""
