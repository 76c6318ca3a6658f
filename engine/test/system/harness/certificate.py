"""Certificates for 127.0.0.1, PEM, valid for two days."""

import subprocess
from pathlib import Path


def make_certificate(directory: Path, name: str = "engine") -> tuple[Path, Path]:
    """(certificate, key) in files; the certificate is its own authority."""
    return _make(directory, name)


class Authority:
    """Signs certificates; `certificate` is its own."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self.certificate, self._key = _make(directory, name)

    def issue(self, name: str) -> tuple[Path, Path]:
        """(certificate, key) in files, for this common name."""
        return _make(self._directory, name, "-CA", str(self.certificate), "-CAkey", str(self._key),
                     "-addext", "basicConstraints=critical,CA:FALSE")


def _make(directory: Path, name: str, *options: str) -> tuple[Path, Path]:
    certificate, key = directory / f"{name}.crt", directory / f"{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", str(key), "-out", str(certificate), *options], check=True, capture_output=True)
    return certificate, key
