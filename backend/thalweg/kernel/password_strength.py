"""Whether a password can be guessed: common ones, words, names, dates, patterns of the keyboard, by zxcvbn's estimate
(Wheeler: zxcvbn, low-budget password strength estimation. USENIX Security, 2016); and a season, month, weekday or name
with a year and a sign behind it, in the languages that zxcvbn has no words of."""

import asyncio
import math
import re
import unicodedata
from collections.abc import Iterable
from urllib.parse import urlsplit

from zxcvbn import zxcvbn  # type: ignore[import-untyped]

from thalweg.kernel.guessable_words import GUESSABLE
from thalweg.kernel.models import FieldProblem
from thalweg.kernel.outside import outside
from thalweg.kernel.passwords import computing_threads
from thalweg.kernel.problems import Problem
from thalweg.kernel.settings import Settings

SCORE_MIN = 3
"""The lowest accepted score, out of 4: beyond 10**8 guesses. Argon2id makes each of them expensive."""
DIGITS_OF_GUESSES_MIN = 9.0
"""For a password around words that everybody thinks of: beyond 10**9 guesses."""
JUDGED_MAX = 72
"""Characters; zxcvbn's time grows with their square. A beginning of that length that can be guessed is refused, however
it goes on."""
NAME_MIN = 3
"""Letters: shorter parts of names are found in any word."""
LOOKALIKES = {"a": "a4@", "e": "e3", "i": "i1!", "l": "l1", "o": "o0", "s": "s5$", "t": "t7"}
YEAR = r"(?:19|20)\d\d"
FOLLOWED = "It is a word or a name that everybody thinks of, with a number and a sign."


async def check_password(password: str, user_name: str, pointer: str, settings: Settings) -> None:
    """Raises invalid_request that says why the password is weak."""
    outside("a password's estimate")
    names = _names(user_name, settings)
    weakness = await asyncio.get_running_loop().run_in_executor(computing_threads, _weakness, password, names)
    if weakness is not None:
        message = f"The password can be guessed. {weakness}".strip()
        cure = "Use four words that have nothing to do with each other, or let a password manager make one."
        error = FieldProblem(pointer=pointer, code="weak_password", message=message, cure=cure)
        raise Problem("invalid_request", message, cure, errors=[error])


def _names(user_name: str, settings: Settings) -> list[str]:
    """The product, the user, and the parts of the console's host: the company's name is one of them."""
    host = urlsplit(settings.console_url).hostname or ""
    parts = [*re.split(r"[^\w]+|_", user_name), *re.split(r"[.-]", host)]
    return [name for name in ("thalweg", user_name, *parts) if name]


def _weakness(password: str, names: list[str]) -> str | None:
    judged = zxcvbn(password[:JUDGED_MAX], user_inputs=names)
    if judged["score"] < SCORE_MIN:
        return str(judged["feedback"]["warning"] or "It is close to the user's name, or to a common password.")
    if _digits_of_guesses(password[:JUDGED_MAX], names) < DIGITS_OF_GUESSES_MIN:
        return FOLLOWED
    return None


def _digits_of_guesses(password: str, names: list[str]) -> float:
    """How many decimal digits the number of guesses has, for somebody who puts known words, years and signs together.
    A word or a sign that is repeated is guessed once."""
    words = GUESSABLE | {_folded(name) for name in names if len(_folded(name)) >= NAME_MIN}
    rest, seen = _folded(password), set[str]()
    for pattern in (_any_of(words), re.compile(YEAR)):
        seen.update(pattern.findall(rest))
        rest = pattern.sub(" ", rest)
    letters = sum(character.isalpha() for character in rest)
    signs = {character for character in rest if not character.isalpha() and character != " "}
    return len(seen) * math.log10(len(words)) + letters * math.log10(26) + len(signs)


def _any_of(words: Iterable[str]) -> re.Pattern[str]:
    """The longest one first."""
    letters = [[f"[{LOOKALIKES[letter]}]" if letter in LOOKALIKES else re.escape(letter) for letter in word] for word in
               sorted(words, key=lambda word: (-len(word), word))]  # fmt: skip
    return re.compile("|".join("".join(word) for word in letters))


def _folded(text: str) -> str:
    """Small and without accents."""
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in parts if not unicodedata.combining(character))
