"""Checks an engine's address. The control token and the databases' passwords are sent there."""

import ipaddress

import httpx

from thalweg.kernel.models import FieldProblem
from thalweg.kernel.problems import Problem
from thalweg.kernel.words import ended

CURE = (
    "Start thalwegd with --tls-cert and --tls-key and give its address as https://...; THALWEG_ENGINE_CA_FILE names "
    "the certificate's authority where the system does not know it."
)


def require_private_way(url: str) -> None:
    """Raises invalid_request for an address that is neither of https nor of loopback."""
    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL as error:
        message = f"{url} is no address: {ended(str(error))}"
        raise _refusal("invalid_url", message, "Give it as https://HOST:PORT.") from error
    if parts.scheme == "https" or _is_loopback(parts.host):
        return
    message = f"{url} is another host, and plain HTTP would show it the control token and the databases' passwords."
    raise _refusal("engine_needs_tls", message, CURE)


def _refusal(code: str, message: str, cure: str) -> Problem:
    problems = [FieldProblem(pointer="/url", code=code, message=message, cure=cure)]
    return Problem("invalid_request", message, cure, errors=problems)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
