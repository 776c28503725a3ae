"""Locust users that call the service, one module for each way of using it.

Importing any of these modules imports Locust, which monkey-patches the standard library for gevent. Import them only in
Locust's processes, never in a test.
"""
