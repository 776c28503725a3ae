"""ValidationService on grpcio's private completion queue, at half the CPU of grpc.aio.

`service.server` imports this package only if RUMMIKUB_VALIDATION_LISTEN is set and the release of grpcio is in
`grpcio_version.TESTED`; otherwise grpc.aio serves the same address.
"""
