"""Lets a worker survive failures: it reports a failure once and tries again."""

import psycopg
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from thalweg.kernel.secret_box import SecretKeyError

OUTAGES = (SQLAlchemyError, psycopg.Error, RedisError, OSError, SecretKeyError)


def in_brief(error: BaseException) -> str:
    """An outage in words that anybody may read: no address, no value, no statement."""
    state = getattr(getattr(error, "orig", error), "sqlstate", None)
    if state is not None:
        return f"the store refuses what is written (SQLSTATE {state})"
    if isinstance(error, RedisError):
        return "Redis cannot be reached"
    if isinstance(error, SecretKeyError):
        return "the secret key does not open what is stored"
    return "the store cannot be reached"
