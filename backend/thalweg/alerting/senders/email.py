"""Sends a notice as plain-text mail: RFC 5321 by the standard library's client, in a thread of its own."""

import asyncio
import smtplib
import socket
import ssl
from email.message import EmailMessage
from email.utils import format_datetime

from thalweg.alerting.notice import Delivered, Notice, headline
from thalweg.alerting.senders.settings import EmailSettings, MailSecurity

PERMANENT = 500
"""Replies from here on are for good (RFC 5321, section 4.2.1)."""


async def send_email(settings: EmailSettings, password: str, notice: Notice, timeout: float) -> Delivered:
    """`timeout` in seconds, for each step of the conversation."""
    try:
        await asyncio.to_thread(_converse, settings, password, mail_of(settings, notice), timeout)
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


def _converse(settings: EmailSettings, password: str, mail: EmailMessage, timeout: float) -> None:
    context = None if settings.security is MailSecurity.PLAIN else _trust(settings)
    if settings.security is MailSecurity.TLS:
        client: smtplib.SMTP = smtplib.SMTP_SSL(settings.host, settings.port, timeout=timeout, context=context)
    else:
        client = smtplib.SMTP(settings.host, settings.port, timeout=timeout)
    with client:
        if settings.security is MailSecurity.STARTTLS:
            client.starttls(context=context)
        if settings.user:
            client.login(settings.user, password)
        client.send_message(mail)


def _trust(settings: EmailSettings) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=settings.ca_certificate or None)


def _failure_of(error: Exception, settings: EmailSettings, timeout: float) -> Delivered:
    where, told = f"{settings.host}:{settings.port}", _words(error)
    match error:
        case smtplib.SMTPAuthenticationError():
            return Delivered("authentication_failed", told, "Correct the user and the password; some services want an "
                             "app password.", final=True)  # fmt: skip
        case smtplib.SMTPRecipientsRefused() | smtplib.SMTPSenderRefused():
            return Delivered("address_refused", told, "Correct the addresses, or let this user send from them.",
                             final=_permanent(error))  # fmt: skip
        case smtplib.SMTPNotSupportedError():
            cure = "The server does not offer this: choose TLS or plain instead of STARTTLS, or leave the user empty."
            return Delivered("not_offered", told, cure, final=True)
        case ssl.SSLError():
            cure = (
                "Choose TLS for port 465 and STARTTLS for 587; for a server with a certificate of its own, give the "
                "certificate that signed it."
            )
            return Delivered("tls_failed", told, cure)
        case smtplib.SMTPResponseException():
            return Delivered(f"smtp_{error.smtp_code}", told, "Read the server's own log.", _permanent(error))
        case TimeoutError():
            return Delivered("timeout", f"{where} did not answer within {timeout:g} s.",
                             "Check host, port and security: a TLS port does not answer without TLS.")  # fmt: skip
        case socket.gaierror():
            return Delivered("unknown_host", f"{settings.host}: {told}", "Correct the mail server's host name.")
        case ValueError():
            return Delivered("invalid_settings", told, "Correct the channel's settings.", final=True)
    return Delivered("unreachable", f"{where}: {told}", "Check host and port, and that the mail server lets us in.")


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
    return " ".join((reply.decode(errors="replace") if isinstance(reply, bytes) else reply).split())
