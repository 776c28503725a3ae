"""The family DRAW_DISCARD: games in which each player takes a tile and discards one. Okey is the first."""
