"""Who calls the service in a load test: Locust's users, one module for each way of using the service.

Importing any of these modules imports Locust, which patches the standard library for gevent: never import them where
something else runs, for instance in a test.
"""
