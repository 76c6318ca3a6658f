"""Places in long conditions, as the command line shows them."""

from thalweg.cli.commands.rules import EXCERPT, excerpt


def test_a_short_line_is_shown_whole() -> None:
    assert excerpt("note < 'b'", 5) == ("note < 'b'", 5)


def test_of_a_long_line_only_what_stands_around_the_place_is_shown() -> None:
    text = "(" * 10_000 + "id = 1" + ")" * 10_000
    shown, before = excerpt(text, 10_000)
    assert shown[before:].startswith("id = 1)")
    assert (shown[:3], shown[-3:]) == ("… (", ") …")
    assert len(shown) == 2 * EXCERPT + 4
    assert excerpt(text, len(text) - 1) == ("… " + ")" * (EXCERPT + 1), EXCERPT + 2)
