"""`thalweg-api`: the API and the console in one process. Any number may run beside each other."""

import sys

import uvicorn

from thalweg.api import create_app
from thalweg.kernel.libpq_environment import forget_libpq_environment
from thalweg.kernel.logging import configure_logging
from thalweg.kernel.settings import Settings
from thalweg.serving import CertificateError, server_config


def run() -> None:
    forget_libpq_environment()
    settings = Settings()
    configure_logging(settings)
    try:
        config = server_config(create_app(settings), settings)
    except CertificateError as error:
        sys.exit(str(error))
    uvicorn.Server(config).run()
