"""A user's device, at the control plane's time, which the test moves on: a code is of use once."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pyotp
import pytest

from tests.conftest import PASSWORD, make_client
from thalweg.features.identity import login_code, proof, second_factor
from thalweg.features.identity.codes import STEP_SECONDS


@dataclass
class Authenticator:
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    secret: str = ""
    recovery_codes: list[str] = field(default_factory=list)

    def code(self, steps: int = 0) -> str:
        """As a device shows whose clock is so many steps ahead."""
        return pyotp.TOTP(self.secret).at(int(self.at.timestamp()) + steps * STEP_SECONDS)

    def fresh(self) -> str:
        self.later()
        return self.code()

    def later(self, **span: float) -> None:
        self.at += timedelta(**span) if span else timedelta(seconds=STEP_SECONDS)

    def wrong(self) -> str:
        near = {self.code(steps) for steps in range(-2, 3)}
        return next(code for code in (f"{number:06}" for number in range(10)) if code not in near)

    def control(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for module in (login_code, proof, second_factor):
            monkeypatch.setattr(module, "now", lambda: self.at)

    async def set_up(self, client: httpx.AsyncClient, user_id: str, code: str | None = None) -> httpx.Response:
        body = {"current_password": PASSWORD, "code": code}
        prepared = await client.post(f"/api/v1/users/{user_id}:prepare-second-factor", json=body)
        assert prepared.status_code == 200, prepared.text
        self.secret = prepared.json()["secret"]
        answer = await client.post(f"/api/v1/users/{user_id}:confirm-second-factor", json={"code": self.code()})
        assert answer.status_code == 200, answer.text
        self.recovery_codes = answer.json()["codes"]
        return answer


async def browser_of(app: Any, name: str, code: str | None = None) -> httpx.AsyncClient:
    """Somebody who has logged in with PASSWORD, and with the code where there is one."""
    client = make_client(app)
    answer = await client.post("/api/v1/session", json={"name": name, "password": PASSWORD})
    if code is not None:
        assert answer.json()["code"] == "second_factor_required", answer.text
        answer = await client.post("/api/v1/session:verify-code", json={"code": code})
    assert answer.status_code == 201, answer.text
    client.headers["X-CSRF-Token"] = answer.json()["csrf_token"]
    return client
