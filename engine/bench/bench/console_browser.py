"""A real browser tab on the overview, driven by console_tab.mjs over its standard input and output."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).with_name("console_tab.mjs")
E2E = Path(__file__).resolve().parents[3] / "e2e"
ANSWER_SECONDS = 90


class Browser:
    """Owner: the event loop. Needs node, Chromium and the modules of e2e."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @staticmethod
    async def open(port: int, password: str, streams: int) -> "Browser":
        """Returns when the overview shows all streams and says that it is live."""
        environment = os.environ | {"THALWEG_E2E": str(E2E), "NO_PROXY": "*", "no_proxy": "*"}
        process = await asyncio.create_subprocess_exec(
            "node", str(PROGRAM), f"http://127.0.0.1:{port}", password, str(streams), env=environment,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
        browser = Browser(process)
        try:
            await browser._answer()
        except BaseException:
            await browser.close()
            raise
        return browser

    async def tell(self, command: str) -> dict[str, Any]:
        assert self._process.stdin
        self._process.stdin.write(f"{command}\n".encode())
        return await self._answer()

    async def _answer(self) -> dict[str, Any]:
        assert self._process.stdout
        line = await asyncio.wait_for(self._process.stdout.readline(), ANSWER_SECONDS)
        if not line:
            raise RuntimeError("the browser ended: see the message above")
        found: dict[str, Any] = json.loads(line)
        return found

    async def close(self) -> None:
        """Its browser ends with it."""
        if self._process.returncode is None and self._process.stdin:
            self._process.stdin.close()
            try:
                await asyncio.wait_for(self._process.wait(), 10)
            except TimeoutError:
                self._process.terminate()
                await self._process.wait()
