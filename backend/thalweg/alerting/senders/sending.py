"""Hands a notice to a channel of any kind. Never raises for what is wrong at the other end: the answer says it."""

from pydantic import ValidationError

from thalweg.alerting.notice import Delivered, Notice
from thalweg.alerting.senders.email import send_email
from thalweg.alerting.senders.log import write_log
from thalweg.alerting.senders.settings import ChannelKind, EmailSettings, WebhookSettings
from thalweg.alerting.senders.webhook import post_webhook
from thalweg.db.models import AlertChannelRow
from thalweg.kernel.outside import outside
from thalweg.kernel.secret_box import SecretBox
from thalweg.kernel.settings import Settings


async def send(channel: AlertChannelRow, secrets: SecretBox, notice: Notice, limits: Settings) -> Delivered:
    """Within the time and the networks that the settings have. Raises SecretKeyError when the channel's secret cannot
    be read."""
    outside("the receiver of a notice")
    secret = secrets.open(channel.secret_sealed) if channel.secret_sealed else ""
    timeout = limits.alerts_timeout
    try:
        match ChannelKind(channel.kind):
            case ChannelKind.WEBHOOK:
                webhook = WebhookSettings.model_validate(channel.settings)
                return await post_webhook(webhook, secret, notice, timeout, limits.webhook_networks)
            case ChannelKind.EMAIL:
                mail = EmailSettings.model_validate(channel.settings)
                return await send_email(mail, secret, notice, timeout, limits.mail_networks or limits.webhook_networks)
            case ChannelKind.LOG:
                return write_log(channel.name, notice)
    except ValidationError as error:  # an older version allowed more
        messages = "; ".join(str(found["msg"]) for found in error.errors(include_url=False, include_input=False))
        return Delivered("invalid_settings", messages, "Correct the channel's settings.", final=True)
