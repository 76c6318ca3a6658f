"""The control store's tables, one file per noun. The schema itself is made by migrations only."""

from thalweg.db.models.abandoned import AbandonedStreamRow
from thalweg.db.models.advisor import AdvisorCureRow, AdvisorPolicyRow, AdvisorRunRow, AdvisorScheduleRow
from thalweg.db.models.alert import (
    AlertChannelRow,
    AlertDeliveryRow,
    AlertRow,
    AlertRuleRow,
    AlertSilenceRow,
)
from thalweg.db.models.authority import AuthorityRow
from thalweg.db.models.base import Base
from thalweg.db.models.database import DatabaseRow
from thalweg.db.models.destination import DestinationRow
from thalweg.db.models.engine import EngineRow, EngineStartRow, EnrolmentRow
from thalweg.db.models.history import HistoryHourRow, HistoryMinuteRow, HistoryRow, HistorySecondRow
from thalweg.db.models.identity import (
    AccessPolicyRow,
    HalfLoginRow,
    LoginThrottleRow,
    RecoveryCodeRow,
    SessionRow,
    TokenRow,
    UserRow,
)
from thalweg.db.models.lab import LabActionRow
from thalweg.db.models.outage import OutageRow
from thalweg.db.models.record import AuditChangesRow, AuditRow, IdempotencyRow, OperationRow
from thalweg.db.models.source_reading import SourceReadingRow
from thalweg.db.models.stream import StreamRow

__all__ = [
    "AbandonedStreamRow",
    "AccessPolicyRow",
    "AdvisorCureRow",
    "AdvisorPolicyRow",
    "AdvisorRunRow",
    "AdvisorScheduleRow",
    "AlertChannelRow",
    "AlertDeliveryRow",
    "AlertRow",
    "AlertRuleRow",
    "AlertSilenceRow",
    "AuditChangesRow",
    "AuditRow",
    "AuthorityRow",
    "Base",
    "DatabaseRow",
    "DestinationRow",
    "EngineRow",
    "EngineStartRow",
    "EnrolmentRow",
    "HalfLoginRow",
    "HistoryHourRow",
    "HistoryMinuteRow",
    "HistoryRow",
    "HistorySecondRow",
    "IdempotencyRow",
    "LabActionRow",
    "LoginThrottleRow",
    "OperationRow",
    "OutageRow",
    "RecoveryCodeRow",
    "SessionRow",
    "SourceReadingRow",
    "StreamRow",
    "TokenRow",
    "UserRow",
]
