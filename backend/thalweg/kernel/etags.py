"""Optimistic concurrency: every updatable row has a version, shown as an entity tag."""

from typing import Annotated

from fastapi import Header

from thalweg.kernel.problems import Problem

IfMatch = Annotated[
    str | None, Header(alias="If-Match", description="`etag` of the resource as you read it; `*` to force.")
]


def etag_of(version: int | str) -> str:
    return f'"{version}"'


def check_if_match(if_match: str | None, version: int | str) -> bool:
    """Raises if_match_required or stale_resource. False: the client changes whatever there is."""
    if if_match is None:
        raise Problem(
            "if_match_required", "An update must say which version it changes.",
            "Send the resource's etag as If-Match.",
        )  # fmt: skip
    tags = {tag.strip().removeprefix("W/") for tag in if_match.split(",")}
    if "*" in tags:
        return False
    if etag_of(version) not in tags:
        raise Problem(
            "stale_resource",
            "It has been changed since you read it.",
            "Read it again, then repeat your change.",
        )
    return True
