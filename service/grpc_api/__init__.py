"""The edge: gRPC handlers, interceptor, status mapping. With codec/ and fast_listener/ the only users of gRPC."""
