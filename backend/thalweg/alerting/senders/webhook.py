"""Posts a notice as JSON, signed: docs/guides/alerts.md tells receivers how to check it.

`Thalweg-Signature: t=SECONDS,v1=HEX` is HMAC-SHA256 (RFC 2104) under the channel's key over "SECONDS.BODY": the time is
part of it, so that a receiver can refuse what is replayed.
"""

import asyncio
import hashlib
import hmac

import httpx

from thalweg import __version__
from thalweg.alerting.notice import Delivered, Notice
from thalweg.alerting.senders.settings import WebhookSettings
from thalweg.kernel.networks import AddressRefused, Networks
from thalweg.kernel.outside import outside

NOT_ALLOWED_CURE = "Use an address inside these networks, or let the administrator add it to THALWEG_WEBHOOK_NETWORKS."


def signature(key: str, body: bytes, seconds: int) -> str:
    digest = hmac.new(key.encode(), f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={seconds},v1={digest}"


async def post_webhook(
    settings: WebhookSettings, key: str, notice: Notice, timeout: float, within: Networks
) -> Delivered:
    """Reports only the status of the receiver's answer: the address may be somebody else's."""
    outside("a webhook")
    body = notice.model_dump_json().encode()
    headers = {
        "Content-Type": "application/json", "User-Agent": f"Thalweg/{__version__}",
        "Thalweg-Event": notice.event.value, "Thalweg-Delivery": notice.delivery_id,
    }  # fmt: skip
    if key:
        headers["Thalweg-Signature"] = signature(key, body, int(notice.at.timestamp()))
    try:
        # With ranges no proxy of the environment is used: it would look the name up by itself.
        async with asyncio.timeout(timeout), httpx.AsyncClient(
            timeout=timeout, follow_redirects=False, trust_env=not within.restrict_addresses
        ) as client:  # fmt: skip
            response = await client.send(await _request(settings.url, body, headers, within), stream=True)
            await response.aclose()  # unread, however long it is
    except AddressRefused as error:
        return Delivered("address_not_allowed", str(error), NOT_ALLOWED_CURE, final=True)
    except (TimeoutError, httpx.TimeoutException):
        return Delivered(
            "timeout", f"No answer within {timeout:g} s.",
            "Let the receiver answer first and work afterwards, and check that no firewall drops the connection.",
        )  # fmt: skip
    except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as error:
        return _unreachable(error)
    if response.is_success:
        return Delivered()
    return _refused(response)


async def _request(url: str, body: bytes, headers: dict[str, str], within: Networks) -> httpx.Request:
    """To the very address that was compared with the ranges, under the name that the address has."""
    named = httpx.Request("POST", url, content=body, headers=headers)
    if not within.restrict_addresses:
        return named
    port = named.url.port or (443 if named.url.scheme == "https" else 80)
    (address, *_) = await within.addresses_of(named.url.host, port)
    return httpx.Request(
        "POST", named.url.copy_with(host=address), content=body, headers={**headers, "Host": named.headers["Host"]},
        extensions={"sni_hostname": named.url.host},
    )  # fmt: skip


def _unreachable(error: Exception) -> Delivered:
    if isinstance(error, httpx.RemoteProtocolError):  # its message may quote what came
        return Delivered("unreachable", "The server there does not speak HTTP.", "Correct the address and its port.")
    reason = str(error) or type(error).__name__
    lowered = reason.lower()
    if "certificate" in lowered or "ssl" in lowered:
        cure = "Give the receiver a certificate that this host trusts, for the name in the address."
        return Delivered("tls_failed", reason, cure)
    if "name or service" in lowered or "resolution" in lowered or "no address" in lowered:
        return Delivered("unknown_host", reason, "Correct the host name in the address.")
    return Delivered("unreachable", reason, "Check the address, and that the receiver runs and listens there.")


def _refused(response: httpx.Response) -> Delivered:
    status = response.status_code
    message = f"The receiver answered {status}."
    cure, final = "Read the receiver's own log.", 400 <= status < 500
    if status in (401, 403):
        cure = "The receiver does not accept the request: give both sides the same key, or correct the address."
    elif status in (404, 405, 410):
        cure = "Correct the address: nothing accepts a POST there."
    elif 300 <= status < 400:
        cure, final = "Give the address that it leads to: redirects are not followed.", True
    elif status in (408, 425, 429):
        cure, final = "It is tried again later: the receiver wants fewer requests.", False
    return Delivered(f"http_{status}", message, cure, final)
