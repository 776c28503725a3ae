"""`rummikub-admin`: the operator's commands."""
