"""The work behind `thalweg-admin`: on the store, without the API."""

import asyncio
import time

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from cryptography.fernet import Fernet
from pydantic import TypeAdapter
from sqlalchemy import create_engine, select, text

from thalweg.db.audit import record_as, snapshot
from thalweg.db.models import EngineRow, UserRow
from thalweg.features.engines.service import register
from thalweg.features.identity import repository
from thalweg.features.identity.schemas import TokenCreate
from thalweg.features.identity.throttle import code_keys, forget_tries
from thalweg.features.identity.tokens import make_token
from thalweg.features.identity.users import user_resource
from thalweg.kernel.context import Resources
from thalweg.kernel.models import Name
from thalweg.kernel.password_strength import check_password
from thalweg.kernel.passwords import hash_password
from thalweg.kernel.principal import Principal, Role
from thalweg.kernel.problems import Problem
from thalweg.kernel.settings import Settings

PASSWORD_MIN = 10
MIGRATION_LOCK = 7_492_116_002
ADMINISTRATION = Principal("", "thalweg-admin", Role.ADMIN, "system", "")


def migrate(settings: Settings) -> str:
    """Upgrades to the newest revision, one process at a time; gives its name."""
    config = Config()
    config.set_main_option("script_location", str(settings.migrations_directory))
    engine = create_engine(settings.store_url, connect_args={"connect_timeout": 5})
    try:
        with engine.connect() as connection:
            connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": MIGRATION_LOCK})
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            connection.commit()
            revision = MigrationContext.configure(connection).get_current_revision()
    finally:
        engine.dispose()
    return revision or "none"


async def create_user(resources: Resources, name: str, password: str, role: Role) -> bool:
    """False when there is such a user already. Raises ValidationError for a name that nobody can log in with."""
    name = TypeAdapter(Name).validate_python(name)
    password_hash = await hash_password(password)
    async with resources.sessions() as session:
        if await repository.user_by_name(session, name) is not None:
            return False
        row = UserRow(name=name, role=role, enabled=True, password_hash=password_hash)
        session.add(row)
        await session.flush()
        await session.refresh(row)
        target = ("user", row.id, row.name)
        record_as(session, ADMINISTRATION, "", None, "users_create", target, None, snapshot(user_resource(row)))
        await session.commit()
    return True


async def set_password(resources: Resources, name: str, password: str) -> bool:
    """True when the user was made by it, as an admin. Raises invalid_request for a password that can be guessed."""
    await check_password(password, name, "", resources.settings)
    if await create_user(resources, name, password, Role.ADMIN):
        return True
    password_hash = await hash_password(password)
    async with resources.sessions() as session:
        row = await repository.user_by_name(session, name)
        if row is None:
            raise Problem("not_found", f"The user {name} was deleted meanwhile.", "Try again.")
        row.password_hash = password_hash
        row.enabled = True
        await repository.delete_sessions(session, row.id)
        await forget_tries(session, row.id, name)
        record_as(session, ADMINISTRATION, "", None, "users_change_password", ("user", row.id, row.name))
        await session.commit()
    return False


async def reset_second_factor(resources: Resources, name: str) -> bool:
    """False when the user has none."""
    async with resources.sessions() as session:
        row = await repository.user_by_name(session, name)
        if row is None:
            raise Problem("not_found", f"There is no user {name}.", "Check the name.")
        had = row.second_factor_sealed is not None
        await repository.forget_second_factor(session, row)
        await repository.forget_failures(session, code_keys(row.id))
        if had:
            row.version += 1
            await repository.delete_sessions(session, row.id)
            state = ({"second_factor": True}, {"second_factor": False})
            target = ("user", row.id, row.name)
            record_as(session, ADMINISTRATION, "", None, "users_reset_second_factor", target, *state)
        await session.commit()
    return had


async def create_token(resources: Resources, user: str, name: str, role: Role, expires_in_days: int) -> str:
    async with resources.sessions() as session:
        row = await repository.user_by_name(session, user)
        if row is None:
            raise Problem("not_found", f"There is no user {user}.", "thalweg-admin create-admin makes one.")
        token, secret = make_token(row, TokenCreate(name=name, role=role, expires_in_days=expires_in_days))
        session.add(token)
        await session.flush()
        record_as(session, ADMINISTRATION, "", None, "tokens_create", ("token", token.id, token.name))
        await session.commit()
    return secret


async def enrol_local(resources: Resources, name: str, url: str, token: str, wait: float) -> bool:
    """True when it is new. Tries again for `wait` seconds while the engine does not answer."""
    deadline = time.monotonic() + wait
    while True:
        try:
            return await _enrol_once(resources, name, url.rstrip("/"), token)
        except Problem as problem:
            unreachable = any(error.code in ("engine_unreachable", "engine_slow") for error in problem.errors)
            if not unreachable or time.monotonic() >= deadline:
                raise
        await asyncio.sleep(0.5)


async def _enrol_once(resources: Resources, name: str, url: str, token: str) -> bool:
    async with resources.sessions() as session:
        row = (await session.scalars(select(EngineRow).where(EngineRow.url == url))).one_or_none()
        fresh = row is None
        if row is None:
            row = await register(session, resources, name, url, token)
            record_as(session, ADMINISTRATION, "", None, "engines_enrol", ("engine", row.id, row.name))
        elif resources.secrets.open(row.control_token_sealed) != token:
            row.control_token_sealed = resources.secrets.seal(token)
            record_as(session, ADMINISTRATION, "", None, "engines_renew_token", ("engine", row.id, row.name))
        await session.commit()
    return fresh


def new_key() -> str:
    return Fernet.generate_key().decode()
