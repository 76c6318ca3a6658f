"""New passwords that can be guessed are refused."""

import pytest

from thalweg.kernel.password_strength import check_password
from thalweg.kernel.problems import Problem
from thalweg.kernel.settings import Settings

SETTINGS = Settings(public_url="https://thalweg.example.com")
GUESSABLE = [
    "Sommer2026!",
    "S0mm3r#2026",
    "Frühling-2026",
    "2025_Automne",
    "Miércoles2026$",
    "Febrero2026!!",
    "Winter+Juli+26",
    "Été2026!!!",
    "Ada-Herbst-26",
    "Example2026!",
    "Willkommen26!",
    "Thalweg2026!",
    "ThalwegSommer26",
    "Passwort2026!",
    "Postgres2026!",
    "Sommer2026!Sommer2026!",
    "!!Lunes!!2026!!",
    "Bienvenue.2027",
    "Lovelace#2026",
    "Monday2026!",
]
GOOD = ("monday copper kettle", "März-Dampf-Orgel", "dezember-xK9#qLw", "k7Yw-2026-qLw2pZ", "weathered copper kettle")


@pytest.mark.parametrize("password", GUESSABLE)
async def test_a_word_that_everybody_thinks_of_with_a_year_and_a_sign_is_refused(password: str) -> None:
    with pytest.raises(Problem) as refused:
        await check_password(password, "ada.lovelace", "/password", SETTINGS)
    assert refused.value.errors[0].code == "weak_password"


@pytest.mark.parametrize("password", GOOD)
async def test_a_known_word_inside_a_good_password_does_no_harm(password: str) -> None:
    await check_password(password, "ada.lovelace", "/password", SETTINGS)
