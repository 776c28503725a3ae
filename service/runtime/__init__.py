"""The process: addresses, admission, rate limits, slow calls, limits of the operating system."""
