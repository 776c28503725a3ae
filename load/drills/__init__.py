"""Drills: failures made on purpose under load, and what callers noticed."""
