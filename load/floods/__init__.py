"""Floods: what one hostile or crowded caller costs all others. `python -m load.floods --help` lists them."""
