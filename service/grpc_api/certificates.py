"""The TLS credentials of both listeners. The files are read again when they change, without a restart."""

import ssl
import threading
from pathlib import Path

import grpc
import structlog

from service.runtime.files import Stamp, stamp_of
from service.settings import Settings, check_authorities, check_pair

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
        self._problem = ""

    def configuration(self) -> grpc.ServerCertificateConfiguration:
        """Returns the content of the files for gRPC. Raises OSError."""
        pair = (self._key.read_bytes(), self._cert.read_bytes())
        authorities = self._client_ca.read_bytes() if self._client_ca else None
        return grpc.ssl_server_certificate_configuration([pair], authorities)

    def changed(self) -> grpc.ServerCertificateConfiguration | None:
        """Returns the new content if the files have changed and fit together, else None. Called at handshakes.

        Files that cannot be read are read again at the next handshake: the process may have had no descriptor left.
        """
        with self._lock:
            stamps = self._current_stamps()
            if stamps == self._stamps:
                return None
            try:
                check_pair(self._cert, self._key)
                if self._client_ca:
                    check_authorities(self._client_ca)
                changed = self.configuration()
            except ssl.SSLError as error:
                self._report(str(error))
                self._stamps = stamps
                return None
            except OSError as error:
                self._report(str(error))
                return None
            self._stamps, self._problem = stamps, ""
        _log.info("certificates read")
        return changed

    def _report(self, problem: str) -> None:
        """Logs a problem of the files, once as long as it stays the same."""
        if problem != self._problem:
            _log.error("certificates not used; those read before stay in use", error=problem)
        self._problem = problem

    def _current_stamps(self) -> tuple[Stamp, ...]:
        return tuple(stamp_of(path) for path in (self._cert, self._key, self._client_ca) if path)
