"""Makes the backend importable and its commands runnable in the virtual environment that runs this.

A link instead of an installation: it needs neither a build back end nor a network, and sources take effect at once.
"""

import sys
import sysconfig
import tomllib
from pathlib import Path

COMMAND = """#!{python}
import sys

from {module} import {attribute}

if __name__ == "__main__":
    sys.exit({attribute}())
"""


def main(backend: Path) -> None:
    project = tomllib.loads((backend / "pyproject.toml").read_text())["project"]
    (Path(sysconfig.get_path("purelib")) / "thalweg.pth").write_text(f"{backend}\n")
    commands = Path(sysconfig.get_path("scripts"))
    for name, target in project.get("scripts", {}).items():
        module, attribute = target.split(":")
        command = commands / name
        command.write_text(COMMAND.format(python=sys.executable, module=module, attribute=attribute))
        command.chmod(0o755)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
