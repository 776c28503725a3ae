"""The gRPC edge: interceptor, statuses, health, servicers. Besides it, only codec and fast_listener use gRPC."""
