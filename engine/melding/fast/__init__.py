"""Judges many plays by one ruleset fast, with cached melds and tile counts in place of the plain rules."""
