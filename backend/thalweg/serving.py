"""Serves the API: by uvicorn, over HTTP or HTTPS, behind the proxies that the settings name."""

import ssl
from functools import partial
from typing import Any

import uvicorn

from thalweg.kernel.http.protocol import Door, ProblemProtocol
from thalweg.kernel.networks import Networks
from thalweg.kernel.settings import Settings
from thalweg.kernel.words import ended


class CertificateError(RuntimeError):
    """The settings tls_certificate_file and tls_key_file name files that cannot be used."""


def server_config(app: Any, settings: Settings) -> uvicorn.Config:
    """Raises CertificateError. Without trusted proxies nobody's X-Forwarded headers count, also those of loopback."""
    _check_certificate(settings)
    config = uvicorn.Config(
        app, host=settings.listen_host, port=settings.listen_port, log_config=None, access_log=False,
        server_header=False, timeout_graceful_shutdown=5, ws="none", http="httptools",
        proxy_headers=bool(settings.trusted_proxies), forwarded_allow_ips=settings.trusted_proxies,
        ssl_certfile=settings.tls_certificate_file, ssl_keyfile=settings.tls_key_file,
    )  # fmt: skip
    config.load()
    # The protocol begins TLS itself: uvicorn's server would show it no connection before its handshake.
    tls, config.ssl = config.ssl, None
    proxies = Networks(tuple(settings.trusted_proxies)) if settings.trusted_proxies else None
    door = Door(settings.request_seconds, tls, proxies)
    config.http_protocol_class = partial(ProblemProtocol, door=door)  # type: ignore[assignment]
    return config


def _check_certificate(settings: Settings) -> None:
    if settings.tls_certificate_file is None or settings.tls_key_file is None:
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(settings.tls_certificate_file, settings.tls_key_file)
    except (OSError, ssl.SSLError) as error:
        raise CertificateError(
            f"THALWEG_TLS_CERTIFICATE_FILE and THALWEG_TLS_KEY_FILE: {settings.tls_certificate_file} and "
            f"{settings.tls_key_file} cannot be used: {ended(str(error))} "
            "Name a certificate chain and its key, both PEM."
        ) from error
