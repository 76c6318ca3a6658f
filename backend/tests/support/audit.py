"""The audit log as tests read it."""

from typing import Any

import httpx


async def asked_for(admin: httpx.AsyncClient, target_id: str | None = None) -> list[dict[str, Any]]:
    """Entries of people and their tokens, newest first. An engine's come between them whenever the collector reads."""
    params = {"target_id": target_id} if target_id else {}
    entries = (await admin.get("/api/v1/audit", params=params)).json()["items"]
    return [entry for entry in entries if entry["actor_name"] != "engine"]
