"""Alerts, their rules, silences, channels and deliveries as the API shows them."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictFloat, StrictInt

from thalweg.alerting.catalogue import AlertRuleId, AlertSeverity, SubjectType
from thalweg.alerting.lifecycle import AlertState
from thalweg.alerting.notice import NoticeEvent
from thalweg.alerting.senders.settings import ChannelKind, EmailSettings, LogSettings, WebhookSettings
from thalweg.kernel.models import Body, Id, Name, Page, Resource, Secret, Text

SILENCE_SECONDS_MAX = 366 * 86400


class AlertSubject(Resource):
    type: SubjectType
    id: str
    name: str


class AlertResolution(StrEnum):
    CLEARED = "cleared"
    NOT_APPLICABLE = "not_applicable"


class Alert(Resource):
    id: str
    rule: AlertRuleId
    title: str
    severity: AlertSeverity
    state: AlertState
    subject: AlertSubject
    stream_id: str | None
    message: str = Field(description="The problem, with its numbers.")
    meaning: str
    action: str = Field(description="The recommended action.")
    page: str = Field(description="The console's page that shows more, as a path.")
    value: float | None
    threshold: float | None
    unit: str
    evidence: dict[str, Any]
    pending_at: datetime
    fired_at: datetime | None = Field(description="Null while it is pending: the condition must hold for a while.")
    resolved_at: datetime | None
    resolution: AlertResolution | None = Field(
        description="cleared: the condition no longer held. not_applicable: its subject is gone or stopped, or the "
        "rule is off."
    )
    over_since: datetime | None = Field(
        description="Since when its condition no longer holds, or its subject is gone: `message`, `value` and "
        "`evidence` tell how it was until then. An alert that still fires is resolved soon unless it comes back. "
        "Null: it goes on."
    )
    silenced: bool = Field(description="A silence suppresses its notices now.")
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    note: str | None = Field(description="Given with the acknowledgement.")
    run_id: int | None = Field(description="The advisor run that was taken when it fired.")


class AlertsAsOf(Resource):
    evaluated_at: datetime | None = Field(
        description="When the rules were last evaluated. Null: nobody knows, as without Redis."
    )
    outdated: str | None = Field(
        description="Why the alerts are not those of now, in words: the rules have not been evaluated for 15 s or "
        "longer, so that none begins or ends. Null: they are."
    )


class AlertPage(Page[Alert], AlertsAsOf):
    """A part of a list. Send `next_cursor` as `cursor` to get the following part; null means the end."""


class AlertCounts(AlertsAsOf):
    """For the bell in the header. `unacknowledged`: firing alerts that nobody has acknowledged or silenced."""

    firing: int
    critical: int
    unacknowledged: int
    pending: int


class AlertFilter(StrEnum):
    OPEN = "open"
    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"
    ALL = "all"


class AlertAcknowledge(Body):
    note: Text = Field(default="", description="A note on the work under way.")


class AlertThreshold(Resource):
    name: str
    label: str
    unit: str
    default: float
    minimum: float
    maximum: float


class AlertRuleValues(Resource):
    enabled: bool
    severity: AlertSeverity
    hold_seconds: float = Field(description="How long the condition must hold before the alert fires.")
    thresholds: dict[str, float]


class AlertRuleSettings(Body):
    """Differences from the defaults. A field that is missing or null has the value of the next wider scope."""

    enabled: StrictBool | None = None
    severity: AlertSeverity | None = None
    hold_seconds: Annotated[StrictFloat, Field(ge=0, le=86400, allow_inf_nan=False)] | None = None
    thresholds: Annotated[dict[str, Annotated[StrictFloat, Field(allow_inf_nan=False)]], Field(max_length=10)] = Field(
        default_factory=dict
    )


class AlertStreamRule(Resource):
    stream_id: str
    stream_name: str
    settings: AlertRuleSettings
    effective: AlertRuleValues


class AlertRule(Resource):
    """A condition that raises alerts. It has nothing to do with the rules of a stream's tables."""

    id: AlertRuleId
    title: str
    meaning: str
    action: str
    subject: SubjectType
    per_stream: bool = Field(description="It can be set for single streams.")
    thresholds: list[AlertThreshold]
    default: AlertRuleValues
    settings: AlertRuleSettings
    effective: AlertRuleValues
    streams: list[AlertStreamRule]
    etag: str


class AlertRules(Resource):
    rules: list[AlertRule]


class AlertSilenceCreate(Body):
    """Suppresses notices. Alerts continue to be shown; those that still fire at its end are notified then."""

    rule: AlertRuleId | None = Field(default=None, description="Null: every alert rule.")
    stream_id: Id | None = Field(default=None, description="Null: every stream, and alerts that concern no stream.")
    seconds: Annotated[StrictInt, Field(ge=60, le=SILENCE_SECONDS_MAX)] = Field(description="From now on.")
    reason: Text = ""


class AlertSilence(Resource):
    id: str
    rule: AlertRuleId | None
    stream_id: str | None
    stream_name: str | None
    until: datetime
    reason: str
    created_by: str
    created_at: datetime


class _ChannelCreate(Body):
    name: Name
    enabled: StrictBool = True
    min_severity: AlertSeverity = Field(default=AlertSeverity.WARNING, description="Less severe alerts are not sent.")
    send_resolved: StrictBool = Field(default=True, description="Also send a notice when an alert is resolved.")


class WebhookChannelCreate(_ChannelCreate):
    kind: Literal[ChannelKind.WEBHOOK]
    settings: WebhookSettings
    secret: Secret = Field(default="", description="The key that signs each body. Never shown again.")


class EmailChannelCreate(_ChannelCreate):
    kind: Literal[ChannelKind.EMAIL]
    settings: EmailSettings
    secret: Secret = Field(default="", description="The user's password. Never shown again.")


class LogChannelCreate(_ChannelCreate):
    kind: Literal[ChannelKind.LOG]
    settings: LogSettings = Field(default_factory=LogSettings)
    secret: Literal[""] = ""


AlertChannelCreate = Annotated[
    WebhookChannelCreate | EmailChannelCreate | LogChannelCreate, Field(discriminator="kind")
]


class AlertChannelUpdate(Body):
    """The kind cannot change. `settings` replace the previous ones as a whole."""

    name: Name | None = None
    enabled: StrictBool | None = None
    min_severity: AlertSeverity | None = None
    send_resolved: StrictBool | None = None
    settings: dict[str, Any] | None = None
    secret: Secret | None = Field(
        default=None,
        description="Unchanged if omitted; empty: none. Required again if the host, port, user or trusted "
        "certificates change, or if TLS becomes weaker.",
    )  # fmt: skip


class AlertChannel(Resource):
    id: str
    name: str
    kind: ChannelKind
    enabled: bool
    min_severity: AlertSeverity
    send_resolved: bool
    settings: dict[str, Any] = Field(description="Empty for viewers if it is a webhook's address.")
    has_secret: bool
    last_delivery: "AlertDelivery | None"
    created_at: datetime
    updated_at: datetime
    etag: str


class DeliveryState(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class DeliveryError(Resource):
    code: str
    message: str
    cure: str


class AlertDelivery(Resource):
    id: str
    channel_id: str
    channel_name: str
    alert_id: str | None = Field(description="Null: a test.")
    title: str
    event: NoticeEvent
    state: DeliveryState
    tries: int
    next_try_at: datetime | None
    created_at: datetime
    finished_at: datetime | None
    took_ms: float | None
    error: DeliveryError | None = Field(description="The error of the last attempt, with its cure.")
