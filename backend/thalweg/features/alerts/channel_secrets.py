"""A channel's secret was given for one place, and is sent to no other."""

from typing import Any
from urllib.parse import urlsplit

from thalweg.alerting.senders.settings import ChannelKind, MailSecurity
from thalweg.kernel.problems import secret_required

DEFAULT_PORTS = {"http": 80, "https": 443}


def check_secret_stays(kind: ChannelKind, stored: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Raises Problem where the stored secret would be used elsewhere, or with less TLS."""
    changes = _webhooks(stored, wanted) if kind is ChannelKind.WEBHOOK else _mails(stored, wanted)
    if changes:
        raise secret_required("secret", changes, "Send the secret again with this change, or an empty one.")


def _webhooks(stored: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    before, after = urlsplit(stored["url"]), urlsplit(wanted["url"])
    changes = []
    if before.hostname != after.hostname:
        changes.append("host")
    if (before.port or DEFAULT_PORTS[before.scheme]) != (after.port or DEFAULT_PORTS[after.scheme]):
        changes.append("port")
    if (before.scheme, after.scheme) == ("https", "http"):
        changes.append("scheme")
    return changes


def _mails(stored: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """STARTTLS is no weaker than TLS: both are insisted on."""
    changes = [name for name in ("host", "port", "user", "ca_certificate") if stored[name] != wanted[name]]
    if wanted["security"] == MailSecurity.PLAIN != stored["security"]:
        changes.append("security")
    return changes
