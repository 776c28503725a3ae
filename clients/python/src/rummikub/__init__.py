"""The Python client of the Rummikub rules service; see client.py."""
