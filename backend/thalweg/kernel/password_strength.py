"""Whether a password can be guessed: common ones, words, names, dates, patterns of the keyboard, by zxcvbn's estimate
(Wheeler: zxcvbn, low-budget password strength estimation. USENIX Security, 2016)."""

import asyncio
import re

from zxcvbn import zxcvbn  # type: ignore[import-untyped]

from thalweg.kernel.models import FieldProblem
from thalweg.kernel.outside import outside
from thalweg.kernel.passwords import computing_threads
from thalweg.kernel.problems import Problem

SCORE_MIN = 3
"""The lowest accepted score, out of 4: beyond 10**8 guesses. Argon2id makes each of them expensive."""
JUDGED_MAX = 72
"""Characters; zxcvbn's time grows with their square. What is guessable so far is refused, however it goes on."""


async def check_password(password: str, user_name: str, pointer: str) -> None:
    """Raises invalid_request that says why the password is weak."""
    outside("a password's estimate")
    weakness = await asyncio.get_running_loop().run_in_executor(computing_threads, _weakness, password, user_name)
    if weakness is not None:
        message = f"The password can be guessed. {weakness}".strip()
        cure = "Use four words that have nothing to do with each other, or let a password manager make one."
        error = FieldProblem(pointer=pointer, code="weak_password", message=message, cure=cure)
        raise Problem("invalid_request", message, cure, errors=[error])


def _weakness(password: str, user_name: str) -> str | None:
    about = ["thalweg", user_name, *re.split(r"[^\w]+", user_name)]
    judged = zxcvbn(password[:JUDGED_MAX], user_inputs=[word for word in about if word])
    if judged["score"] >= SCORE_MIN:
        return None
    return str(judged["feedback"]["warning"] or "It is close to the user's name, or to a common password.")
