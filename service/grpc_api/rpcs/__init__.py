"""The rows of all RPCs, a module for each subject, and the functions that answer those that are no plain change."""
