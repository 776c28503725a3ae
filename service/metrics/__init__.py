"""Prometheus metrics, of one process or several."""
