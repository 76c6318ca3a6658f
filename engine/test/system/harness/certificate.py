"""A self-made certificate for 127.0.0.1."""

import subprocess
from pathlib import Path


def make_certificate(directory: Path, name: str = "engine") -> tuple[Path, Path]:
    """(certificate, key): PEM files, valid for two days; the certificate is its own authority."""
    certificate, key = directory / f"{name}.crt", directory / f"{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    return certificate, key
