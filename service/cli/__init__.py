"""Command-line parts: analysis, review, greeting."""
