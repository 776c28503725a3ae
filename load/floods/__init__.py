"""Floods: the cost that one hostile caller imposes on all others. `python -m load.drills flood --help` lists them."""
