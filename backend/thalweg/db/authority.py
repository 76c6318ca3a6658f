"""The control plane's own certificate authority: made at first use, one for all processes."""

from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import AuthorityRow
from thalweg.kernel.certificates import make_authority
from thalweg.kernel.clock import now
from thalweg.kernel.secret_box import SecretBox


async def authority_of(session: AsyncSession, secrets: SecretBox) -> AuthorityRow:
    """In the caller's transaction. Two that make it at once get the same: the second waits for the first's commit."""
    row = await session.get(AuthorityRow, 1)
    if row is None:
        certificate, key = make_authority(now())
        made = insert(AuthorityRow).values(id=1, certificate=certificate, key_sealed=secrets.seal(key))
        await session.execute(made.on_conflict_do_nothing())
        row = await session.get_one(AuthorityRow, 1)
    return row
