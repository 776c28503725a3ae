"""Floods and crowds: the cost that one hostile caller, or many honest ones, impose on all others.

`python -m load.drills flood --help` lists the floods, `python -m load.floods.crowds --help` the crowds.
"""
