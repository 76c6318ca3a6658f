"""The audit log as the API shows it."""

from datetime import datetime
from typing import Any

from pydantic import Field

from thalweg.kernel.models import Resource
from thalweg.kernel.principal import Via


class AuditEntry(Resource):
    id: str
    at: datetime
    actor_id: str | None
    actor_name: str
    via: Via
    action: str = Field(examples=["databases_create"])
    sentence: str = Field(description="The action in words, without who and on what: Parked transaction 17 discarded.")
    target_type: str
    target_id: str
    target_name: str
    before: dict[str, Any] | None = Field(description="The resource before, without secrets.")
    after: dict[str, Any] | None = Field(description="The resource after, without secrets.")
    request_id: str
    address: str | None
