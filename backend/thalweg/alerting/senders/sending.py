"""Hands a notice to a channel of any kind. Never raises for what is wrong at the other end: the answer says it."""

from thalweg.alerting.notice import Delivered, Notice
from thalweg.alerting.senders.email import send_email
from thalweg.alerting.senders.log import write_log
from thalweg.alerting.senders.settings import ChannelKind, EmailSettings, WebhookSettings
from thalweg.alerting.senders.webhook import post_webhook
from thalweg.db.models import AlertChannelRow
from thalweg.kernel.networks import Networks
from thalweg.kernel.outside import outside
from thalweg.kernel.secret_box import SecretBox


async def send(
    channel: AlertChannelRow, secrets: SecretBox, notice: Notice, timeout: float, within: Networks
) -> Delivered:
    """`timeout` in seconds, for the whole try; webhooks may lead `within`. Raises SecretKeyError when the
    channel's secret cannot be read."""
    outside("the receiver of a notice")
    secret = secrets.open(channel.secret_sealed) if channel.secret_sealed else ""
    match ChannelKind(channel.kind):
        case ChannelKind.WEBHOOK:
            return await post_webhook(WebhookSettings.model_validate(channel.settings), secret, notice, timeout, within)
        case ChannelKind.EMAIL:
            return await send_email(EmailSettings.model_validate(channel.settings), secret, notice, timeout)
        case ChannelKind.LOG:
            return write_log(channel.name, notice)
