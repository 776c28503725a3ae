"""The second transport: validation calls served from grpcio's private completion queue."""
