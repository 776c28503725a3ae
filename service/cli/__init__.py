"""Command-line parts: analysis, health check, greeting."""
