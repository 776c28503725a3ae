"""The TLS credentials of both listeners. The files are read again when they change, without a restart."""

import ssl
import threading
from pathlib import Path

import grpc
import structlog

from service.runtime.files import Stamp, stamp_of
from service.settings import Settings

_log = structlog.get_logger()


def server_credentials(settings: Settings) -> grpc.ServerCredentials | None:
    """Returns the TLS credentials; None without TLS. gRPC's core requires TLS 1.2 at least."""
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    files = CertificateFiles(settings.tls_cert, settings.tls_key, settings.tls_client_ca)
    return grpc.dynamic_ssl_server_credentials(
        files.configuration(),
        files.changed,  # type: ignore[arg-type]  # None stands for no change, by grpcio's documentation
        require_client_authentication=settings.tls_client_ca is not None,
    )


class CertificateFiles:
    """The files of the server's certificate. Thread-safe.

    Args:
        cert: The certificate chain.
        key: Its private key.
        client_ca: The authorities of client certificates, if clients need one.
    """

    def __init__(self, cert: Path, key: Path, client_ca: Path | None) -> None:
        self._cert = cert
        self._key = key
        self._client_ca = client_ca
        self._lock = threading.Lock()
        self._stamps = self._current_stamps()

    def configuration(self) -> grpc.ServerCertificateConfiguration:
        """Returns the content of the files for gRPC. Raises OSError."""
        pair = (self._key.read_bytes(), self._cert.read_bytes())
        authorities = self._client_ca.read_bytes() if self._client_ca else None
        return grpc.ssl_server_certificate_configuration([pair], authorities)

    def changed(self) -> grpc.ServerCertificateConfiguration | None:
        """Returns the new content if the files have changed and fit together, else None. Called at handshakes."""
        with self._lock:
            stamps = self._current_stamps()
            if stamps == self._stamps:
                return None
            self._stamps = stamps
        try:
            check_certificates(self._cert, self._key, self._client_ca)
            changed = self.configuration()
        except (OSError, ssl.SSLError) as error:
            _log.error("certificates not used; those read before stay in use", error=str(error))
            return None
        _log.info("certificates read")
        return changed

    def _current_stamps(self) -> tuple[Stamp, ...]:
        return tuple(stamp_of(path) for path in (self._cert, self._key, self._client_ca) if path)


def check_certificates(cert: Path, key: Path, client_ca: Path | None) -> None:
    """Raises OSError or SSLError unless the files can be used together."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key, password="")  # without a password OpenSSL would prompt for one
    if client_ca:
        context.load_verify_locations(client_ca)
