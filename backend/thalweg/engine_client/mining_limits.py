"""Limits and archive of streams that mine. Users see them among the parameters; the engine takes them beside these
(engine/contract/control-api.md, Connections)."""

from collections.abc import Mapping
from typing import Any, Final

WAL_ARCHIVE: Final = "wal_archive"
MINING_LIMITS: Final[list[dict[str, Any]]] = [
    {
        "name": "staging_limit_mb", "component": "CAPTURE", "scope": "STREAM", "type": "integer", "default": 10240,
        "minimum": 64, "maximum": 16777216, "unit": "MiB", "live": False,
        "description": "Only for log mining: disk space at the engine for the source's WAL. At the limit the source "
        "keeps what follows.",
    },
    {
        "name": "wal_keep_mb", "component": "CAPTURE", "scope": "STREAM", "type": "integer", "default": 1024,
        "minimum": 0, "maximum": 16777216, "unit": "MiB", "live": False,
        "description": "Only for log mining: how much of the source's WAL the engine keeps, for searches and for "
        "destinations that are restored to an earlier state, although none needs it any more. It counts within "
        "staging_limit_mb, and goes first. 0: none.",
    },
    {
        "name": "capture_memory_mb", "component": "CAPTURE", "scope": "STREAM", "type": "integer", "default": 256,
        "minimum": 1, "maximum": 16777216, "unit": "MiB", "live": False,
        "description": "Only for log mining: memory for rows of transactions that are open at the source. Above it, "
        "changes of the largest ones leave before their commit. While the stream starts, reaching it fails the start "
        "(capture_memory_reached).",
    },
    {
        "name": WAL_ARCHIVE, "component": "CAPTURE", "scope": "STREAM", "type": "text", "default": "", "maximum": 100,
        "live": False,
        "description": "Only for log mining: an archive of the source's WAL, by the name that the engine's "
        "wal-archives.json has for it. WAL that the source no longer has, or cannot send for a minute, comes from "
        "there. Empty: none.",
    },
]  # fmt: skip
NAMES: Final = frozenset(limit["name"] for limit in MINING_LIMITS)


def without_limits(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if name not in NAMES}


def limits_in(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if name in NAMES}
