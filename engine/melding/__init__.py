"""The family MELDING: Sabra and its variants, in which players rearrange the melds of a shared table."""
