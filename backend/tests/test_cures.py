"""The engine's cures are for streams that run: none of them loses rows, and each names what exists."""

import json
from pathlib import Path

import typer.main
from typer.core import TyperGroup

from thalweg.cli.main import commands
from thalweg.engine_client.error_codes import ErrorCode

CONTRACT = Path(__file__).resolve().parents[2] / "engine" / "contract"
CURES = {error["code"]: error["cure"] for error in json.loads((CONTRACT / "errors.json").read_text())["errors"]}


def test_a_table_is_made_anew_by_copying_it_again() -> None:
    command = "thalweg streams tables copy"
    for code in (
        ErrorCode.DESTINATION_TABLE_DIFFERS, ErrorCode.MISSING_TABLE, ErrorCode.INITIAL_COPY_INCONSISTENT,
    ):  # fmt: skip
        assert command in CURES[code], code
    group = typer.main.get_command(commands)
    for word in command.split()[1:]:
        assert isinstance(group, TyperGroup)
        group = group.commands[word]


def test_no_cure_lets_a_running_stream_make_a_table_that_was_dropped() -> None:
    for code, cure in CURES.items():
        assert "let the engine create" not in cure, code
        assert not cure.startswith("Create the table"), code


def test_a_stream_that_is_created_again_copies_its_tables() -> None:
    for code, cure in CURES.items():
        if "create it again" in cure:
            assert "with a copy into emptied tables" in cure, code


def test_a_cure_begins_with_what_to_do() -> None:
    """The overview shows its first sentence only, without the message."""
    for code, cure in CURES.items():
        assert not cure.startswith("The message"), code


def test_each_limit_of_spilled_changes_has_its_cure() -> None:
    parameters = {
        parameter["name"] for parameter in json.loads((CONTRACT / "parameters.json").read_text())["parameters"]
    }
    cure = CURES[ErrorCode.SPILL_LIMIT_REACHED]
    for limit in ("spill_limit_mb", "queue_spill_limit_mb"):
        assert limit in parameters
        assert f"{limit}: " in cure
