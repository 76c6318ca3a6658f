"""Kinds of capture, in the words of the store, of REST and of the engine's contract."""

from enum import StrEnum


class CaptureKind(StrEnum):
    """logical: the source decodes its WAL. wal: the engine receives the WAL and mines it on its own host."""

    LOGICAL = "logical"
    WAL = "wal"
