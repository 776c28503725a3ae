"""Scripts for maintainers that are not tests."""
