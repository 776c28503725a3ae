"""Consistency under faults: players on faulty servers, their histories, and a checker that does not use the service."""
