"""The engine that captures, where nobody has named it."""

from collections.abc import Sequence

from thalweg.cli.client import Api, CommandError


def check_one_engine(api: Api, engine: str | None, applies: Sequence[str | None] = (), how: str = "--engine") -> None:
    """Fails where the control plane could not choose: there are several engines, and neither one that captures nor the
    only destination names one. `how`: where to name it."""
    if engine is not None or (len(applies) == 1 and applies[0] is not None):
        return
    names = sorted(each["name"] for each in api.items("/engines"))
    if len(names) > 1:
        raise CommandError(
            "There are several engines, and none is named to capture.",
            f"Name one with {how}: {', '.join(names)}. Ideally one near the source.",
        )
