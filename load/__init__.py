"""Measurements of the solver and the service, and the positions that they are made on."""
