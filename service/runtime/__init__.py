"""The process: addresses, admission of calls, threads, garbage collection."""
