"""The Rummikub rules service."""
