"""The policy that requires a second factor."""

from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.audit import record, snapshot
from thalweg.db.models import AccessPolicyRow, UserRow
from thalweg.features.identity import repository
from thalweg.features.identity.schemas import AccessPolicy, AccessPolicyUpdate
from thalweg.kernel.context import Context
from thalweg.kernel.etags import check_if_match, etag_of
from thalweg.kernel.principal import Demand, Role


async def is_demanded(session: AsyncSession, user: UserRow) -> bool:
    demand = Demand((await repository.access_policy(session)).require_second_factor)
    return demand is Demand.EVERYBODY or (demand is Demand.ADMINS and user.role == Role.ADMIN)


async def lacks_second_factor(session: AsyncSession, user: UserRow) -> bool:
    return user.second_factor_sealed is None and await is_demanded(session, user)


def _resource(row: AccessPolicyRow) -> AccessPolicy:
    return AccessPolicy(require_second_factor=Demand(row.require_second_factor), etag=etag_of(row.version))


async def get_policy(context: Context) -> AccessPolicy:
    return _resource(await repository.access_policy(context.session))


async def update_policy(context: Context, body: AccessPolicyUpdate, if_match: str | None) -> AccessPolicy:
    row = await repository.access_policy(context.session, lock=True)
    check_if_match(if_match, row.version)
    before = snapshot(_resource(row))
    row.require_second_factor = body.require_second_factor
    row.version += 1
    context.session.add(row)
    await context.session.flush()
    policy = _resource(row)
    record(context, "access_policy_update", ("access_policy", "policy", "policy"), before, snapshot(policy))
    return policy
