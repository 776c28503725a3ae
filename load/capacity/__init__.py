"""What a deployment takes: measured costs of games, turns, watchers and lists, and the machines that follow."""
