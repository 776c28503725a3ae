"""What serves operators, not players: the archive, the feed of all changes, deletion, forgetting, migration.

It is plugged in from the composition. No turn calls it.
"""
