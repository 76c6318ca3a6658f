"""Writes the audit log: in the same transaction as the change, so that neither is without the other."""

from typing import Any

from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import AuditRow
from thalweg.kernel.context import Context
from thalweg.kernel.principal import Principal

HIDDEN = frozenset({"etag", "updated_at"})


def snapshot(resource: BaseModel | None) -> dict[str, Any] | None:
    """A resource as the API shows it: resources hold no secrets."""
    return None if resource is None else resource.model_dump(mode="json", by_alias=True, exclude=set(HIDDEN))


def record(
    context: Context,
    action: str,
    target: tuple[str, str, str],
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> AuditRow:
    """`target` is (type, id, name)."""
    return record_as(
        context.session, context.principal, context.request_id, context.address, action, target, before, after
    )


def record_as(
    session: AsyncSession,
    principal: Principal,
    request_id: str,
    address: str | None,
    action: str,
    target: tuple[str, str, str],
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> AuditRow:
    target_type, target_id, target_name = target
    entry = AuditRow(
        actor_id=principal.user_id if principal.via in ("session", "token") else None, actor_name=principal.name,
        via=principal.via, credential_id=principal.credential_id, action=action, target_type=target_type,
        target_id=target_id, target_name=target_name, before=before, after=after,
        request_id=request_id, address=address,
    )  # fmt: skip
    session.add(entry)
    return entry
