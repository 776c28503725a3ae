"""Certificates for tests and benchmarks, made with openssl."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

_NEW_KEY: Final = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "key.pem")


def openssl(folder: Path, *arguments: str) -> None:
    program = shutil.which("openssl")
    assert program, "openssl is not on PATH; these tests need it to create certificates"
    subprocess.run([program, *arguments], cwd=folder, check=True, capture_output=True, timeout=30)


def self_signed(folder: Path, names: str, subject: str = "/CN=rummikub.example") -> None:
    """Creates cert.pem and key.pem for a subject and, unless empty, its alternative names."""
    extensions = ["-addext", f"subjectAltName={names}"] if names else []
    openssl(folder, "req", "-x509", *_NEW_KEY, "-out", "cert.pem", "-days", "2", "-subj", subject, *extensions)


def client_certificate(authority: Path, folder: Path, subject: str, names: str = "") -> None:
    """Creates cert.pem and key.pem of a client, signed by an authority's."""
    extensions = ("-addext", f"subjectAltName={names}") if names else ()
    openssl(folder, "req", *_NEW_KEY, "-out", "request.pem", "-subj", subject, *extensions)
    signed_by = (
        "-CA",
        str(authority / "cert.pem"),
        "-CAkey",
        str(authority / "key.pem"),
        "-copy_extensions",
        "copyall",
    )
    openssl(folder, "x509", "-req", "-in", "request.pem", "-out", "cert.pem", "-days", "2", *signed_by)
