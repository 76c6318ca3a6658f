"""`thalweg-api`: the API and the console in one process. Any number may run beside each other."""

import uvicorn

from thalweg.api import create_app
from thalweg.kernel.http.protocol import ProblemProtocol
from thalweg.kernel.logging import configure_logging
from thalweg.kernel.settings import Settings


def run() -> None:
    settings = Settings()
    configure_logging(settings)
    uvicorn.run(
        create_app(settings), host=settings.listen_host, port=settings.listen_port, log_config=None,
        access_log=False, server_header=False, timeout_graceful_shutdown=5, http=ProblemProtocol,
    )  # fmt: skip
