"""Every part has the version that the file VERSION says. The engine's build reads it; where a file must name it itself,
the two are compared here."""

import json
import re
import sys
import tomllib

from sources import ROOT

PACKAGES = ("frontend/package.json", "frontend/package-lock.json", "e2e/package.json")
INIT = "backend/thalweg/__init__.py"


def main() -> int:
    version = (ROOT / "VERSION").read_text().strip()
    named = {name: json.loads((ROOT / name).read_text())["version"] for name in PACKAGES}
    named["backend/pyproject.toml"] = tomllib.loads((ROOT / "backend/pyproject.toml").read_text())["project"]["version"]
    found = re.search(r'^__version__ = "(.*)"$', (ROOT / INIT).read_text(), re.MULTILINE)
    named[INIT] = found[1] if found else None
    wrong = [f"{name} says {said}, VERSION {version}" for name, said in named.items() if said != version]
    print("\n".join(wrong) or f"every part is of version {version}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
