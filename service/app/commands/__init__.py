"""Commands: what changes a game. A command decides on a game; the change loop (changes.py) loads and commits.

`command` has what all share, the other modules the commands of one subject each. Most RPCs need no class of their own:
they are an action of a seat (SeatAction, DealingAction).
"""
