"""Lets a worker survive failures: it reports a failure once and tries again."""

import psycopg
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from thalweg.kernel.secret_box import SecretKeyError

OUTAGES = (SQLAlchemyError, psycopg.Error, RedisError, OSError, SecretKeyError)
