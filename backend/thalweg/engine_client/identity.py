"""Gives an engine its identity: it makes the key, which never leaves it; the control plane signs the certificate."""

from dataclasses import dataclass
from datetime import datetime

import httpx
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.authority import authority_of
from thalweg.db.models import EngineRow
from thalweg.engine_client.client import EngineClient, EngineFailure
from thalweg.engine_client.documents import EngineProcess
from thalweg.kernel.certificates import RENEW_BELOW, RequestRefused, sign_request
from thalweg.kernel.clock import now
from thalweg.kernel.secret_box import SecretBox


@dataclass(frozen=True)
class Authority:
    """PEM. Holds the private key: never log it."""

    certificate: str
    key: str


def identity_name(engine_id: str) -> str:
    """The name in an engine's certificate: a DNS label, the same for as long as the engine is enrolled."""
    return f"engine-{engine_id}"


def needs_identity(process: EngineProcess, engine_id: str, at: datetime) -> bool:
    """True for an engine that can have one and has none, has another's, or one with less than a third of its life."""
    if not process.can_propagate:
        return False
    identity = process.propagation
    return identity is None or identity.name != identity_name(engine_id) or identity.not_after - at < RENEW_BELOW


async def open_authority(session: AsyncSession, secrets: SecretBox) -> Authority:
    row = await authority_of(session, secrets)
    return Authority(row.certificate, secrets.open(row.key_sealed))


async def give_identity(client: EngineClient, engine_id: str, authority: Authority) -> bool:
    """False when the engine is of a version that knows no identities. Raises EngineFailure."""
    name = identity_name(engine_id)
    try:
        request = await client.request_identity(name)
    except EngineFailure as failure:
        if failure.status == httpx.codes.NOT_FOUND:
            return False
        raise
    try:
        certificate = sign_request(request.csr, name, authority.certificate, authority.key, now())
    except RequestRefused as error:
        raise EngineFailure(
            "engine_protocol", str(error), "Run the engine and the control plane in the same version.", 200
        ) from error
    await client.put_identity(certificate, authority.certificate)
    return True


def observe_identity(row: EngineRow, process: EngineProcess) -> bool:
    """Writes down what the engine says of its identity. True when what its peers must know has changed."""
    before = (row.identity_name, row.reached_at)
    reported = process.propagation
    row.identity_name = reported.name if reported else None
    row.identity_fingerprint = reported.fingerprint if reported else None
    row.identity_not_after = reported.not_after if reported else None
    row.identity_listen = reported.listen if reported else None
    return before != (row.identity_name, row.reached_at)
