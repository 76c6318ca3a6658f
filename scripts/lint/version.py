"""Every part has the version that the file VERSION says. The engine's build reads it; where a file must name it itself,
the two are compared here. The extension thalweg_datalayer has the version of its call, the one that the engine uses."""

import json
import re
import sys
import tomllib

from sources import ROOT

PACKAGES = ("frontend/package.json", "frontend/package-lock.json", "e2e/package.json", "e2e/package-lock.json")
INIT = "backend/thalweg/__init__.py"


def main() -> int:
    version = (ROOT / "VERSION").read_text().strip()
    named = {name: json.loads((ROOT / name).read_text())["version"] for name in PACKAGES}
    named["backend/pyproject.toml"] = tomllib.loads((ROOT / "backend/pyproject.toml").read_text())["project"]["version"]
    named[INIT] = _found(r'^__version__ = "(.*)"$', (ROOT / INIT).read_text())
    for name in PACKAGES:
        if name.endswith("-lock.json"):
            named[f"{name}, its package"] = json.loads((ROOT / name).read_text())["packages"][""]["version"]
    wrong = [f"{name} says {said}, VERSION {version}" for name, said in named.items() if said != version]
    wrong += _datalayer()
    print("\n".join(wrong) or f"every part is of version {version}")
    return 1 if wrong else 0


def _datalayer() -> list[str]:
    control = (ROOT / "engine/datalayer/thalweg_datalayer.control").read_text()
    used = (ROOT / "engine/src/apply/applier/data_layer.cc").read_text()
    offered = _found(r"^default_version = '(.*)'$", control)
    wanted = _found(r'kVersion = "(.*)";$', used)
    script = f"engine/datalayer/thalweg_datalayer--{wanted}.sql"
    return [f"thalweg_datalayer.control offers {offered}, the engine uses {wanted}"] * (offered != wanted) + [
        f"{script} is not there"] * (not (ROOT / script).is_file())


def _found(pattern: str, text: str) -> str | None:
    found = re.search(pattern, text, re.MULTILINE)
    return found[1] if found else None


if __name__ == "__main__":
    sys.exit(main())
