"""Rummikub Twist: melds with a double joker, a mirror or a color change (joker_kinds TWIST)."""
