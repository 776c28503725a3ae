"""Releases: what has to hold before one, the packages, and that each works as its users get it."""
