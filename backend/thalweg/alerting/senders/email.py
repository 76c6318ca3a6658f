"""Sends a notice as plain-text mail."""

import smtplib
import socket
import ssl
from email.message import EmailMessage
from email.utils import format_datetime

from thalweg.alerting.notice import Delivered, Notice, headline
from thalweg.alerting.senders.settings import EmailSettings
from thalweg.alerting.senders.smtp import send_mail
from thalweg.kernel.networks import AddressRefused, Networks

PERMANENT = 500
"""Replies from here on are for good (RFC 5321, section 4.2.1)."""
QUOTED_MAX = 300
"""Characters of a reply."""
NOT_ALLOWED_CURE = "Use a server inside these networks, or let the administrator add it to THALWEG_MAIL_NETWORKS."


async def send_email(
    settings: EmailSettings, password: str, notice: Notice, timeout: float, within: Networks
) -> Delivered:
    """`timeout` in seconds, for the whole conversation."""
    try:
        await send_mail(settings, password, mail_of(settings, notice), timeout, within)
    except (OSError, smtplib.SMTPException, ValueError) as error:
        return _failure_of(error, settings, timeout)
    return Delivered()


def mail_of(settings: EmailSettings, notice: Notice) -> EmailMessage:
    mail = EmailMessage()
    mail["Subject"] = " ".join(headline(notice).split())
    mail["From"] = settings.sender
    mail["To"] = ", ".join(settings.recipients)
    mail["Date"] = format_datetime(notice.at)
    mail["Message-ID"] = f"<thalweg-{notice.delivery_id}@{settings.sender.rpartition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"  # RFC 3834: no holiday replies
    if notice.alert is not None:
        # Firing and resolved show as one conversation.
        mail["References"] = f"<thalweg-alert-{notice.alert.id}@{settings.sender.rpartition('@')[2]}>"
    mail.set_content(_body(notice))
    return mail


def _body(notice: Notice) -> str:
    alert = notice.alert
    if alert is None:
        return f"This is a test: alerts of Thalweg reach this address.\n\n{notice.url}\n"
    lines = [alert.message, "", "What it means", alert.meaning, "", "What to do", alert.action, "", notice.url, ""]
    if alert.fired_at is not None:
        lines.append(f"Firing since {alert.fired_at:%Y-%m-%d %H:%M:%S} UTC.")
    if alert.resolved_at is not None:
        lines = [f"It ended at {alert.resolved_at:%Y-%m-%d %H:%M:%S} UTC. It was:", *lines]
    return "\n".join(lines) + "\n"


def _failure_of(error: Exception, settings: EmailSettings, timeout: float) -> Delivered:
    where, text = f"{settings.host}:{settings.port}", _words(error)
    match error:
        case AddressRefused():
            return Delivered("address_not_allowed", text, NOT_ALLOWED_CURE, final=True)
        case smtplib.SMTPConnectError():  # its text may be another service's
            return Delivered("unreachable", f"{where} did not greet us as a mail server.",
                             "Check host and port, and that the mail server lets us in.")  # fmt: skip
        case smtplib.SMTPAuthenticationError():
            return Delivered("authentication_failed", text, "Correct the user and the password; some services want an "
                             "app password.", final=True)  # fmt: skip
        case smtplib.SMTPRecipientsRefused() | smtplib.SMTPSenderRefused():
            return Delivered("address_refused", text, "Correct the addresses, or let this user send from them.",
                             final=_permanent(error))  # fmt: skip
        case smtplib.SMTPNotSupportedError():
            cure = "The server does not offer this: choose TLS or plain instead of STARTTLS, or leave the user empty."
            return Delivered("not_offered", text, cure, final=True)
        case ssl.SSLError():
            cure = (
                "Choose TLS for port 465 and STARTTLS for 587; for a server with a certificate of its own, give the "
                "certificate that signed it."
            )
            return Delivered("tls_failed", text, cure)
        case smtplib.SMTPResponseException():
            return Delivered(f"smtp_{error.smtp_code}", text, "Read the server's own log.", _permanent(error))
        case TimeoutError():
            return Delivered("timeout", f"{where} did not answer within {timeout:g} s.",
                             "Check host, port and security: a TLS port does not answer without TLS.")  # fmt: skip
        case socket.gaierror():
            return Delivered("unknown_host", f"{settings.host}: {text}", "Correct the mail server's host name.")
        case ValueError():
            return Delivered("invalid_settings", text, "Correct the channel's settings.", final=True)
    return Delivered("unreachable", f"{where}: {text}", "Check host and port, and that the mail server lets us in.")


def _permanent(error: Exception) -> bool:
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return all(code >= PERMANENT for code, _ in error.recipients.values())
    return isinstance(error, smtplib.SMTPResponseException) and error.smtp_code >= PERMANENT


def _words(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return "; ".join(f"{name}: {code} {_text(reply)}" for name, (code, reply) in error.recipients.items())
    if isinstance(error, smtplib.SMTPResponseException):
        return f"{error.smtp_code} {_text(error.smtp_error)}"
    return str(error) or type(error).__name__


def _text(reply: bytes | str) -> str:
    return " ".join((reply.decode(errors="replace") if isinstance(reply, bytes) else reply).split())[:QUOTED_MAX]
