#!/usr/bin/python3
"""Stands in for systemctl where no systemd runs: `enable --now NAME` does what the unit and its drop-ins say.

It knows what our engine's unit uses of users, credentials, environment and state; nothing is sandboxed. The
process runs on; its number is in $STAND_IN/NAME.pid.
"""

import os
import pwd
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

UNITS = Path("/etc/systemd/system")
STAND_IN = Path(os.environ["STAND_IN"])


def directives(name: str) -> list[tuple[str, str]]:
    files = [UNITS / f"{name}.service", *sorted((UNITS / f"{name}.service.d").glob("*.conf"))]
    text = "\n".join(file.read_text() for file in files).replace("\\\n", " ")
    return re.findall(r"^(\w+)=(.*)$", text, re.M)


def start(name: str) -> None:
    found = directives(name)
    values = dict(found)  # the last one counts
    user = pwd.getpwnam(values["User"])
    credentials, state = STAND_IN / "credentials", STAND_IN / "state"
    for directory in (credentials, state):
        directory.mkdir(mode=0o700)
        os.chown(directory, user.pw_uid, user.pw_gid)
    environment = {"PATH": "/usr/bin:/bin", "STATE_DIRECTORY": str(state), "CREDENTIALS_DIRECTORY": str(credentials)}
    for directive, value in found:
        if directive == "Environment":
            environment |= dict(
                assignment.split("=", 1) for assignment in shlex.split(value.replace("%d", str(credentials)))
            )
        elif directive == "LoadCredential":
            credential, path = value.split(":")
            target = credentials / credential
            shutil.copyfile(path, target)  # one that is missing is an error, as with systemd
            os.chown(target, user.pw_uid, user.pw_gid)
            target.chmod(0o400)
        elif directive in ("SetCredential", "ExecStartPre"):
            raise SystemExit(f"{directive} is not known here")
    # EnvironmentFile goes before Environment, wherever it stands.
    file = Path(values["EnvironmentFile"].removeprefix("-"))
    if file.exists():
        environment |= dict(line.split("=", 1) for line in file.read_text().splitlines() if line)
    process = subprocess.Popen(
        [
            "setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--no-new-privs",
            "--inh-caps=-all", "--", *words(values["ExecStart"], environment),
        ],
        env=environment, stdin=subprocess.DEVNULL, start_new_session=True,
        stdout=(STAND_IN / f"{name}.log").open("ab"), stderr=subprocess.STDOUT,
    )  # fmt: skip
    (STAND_IN / f"{name}.pid").write_text(str(process.pid))


def words(line: str, environment: dict[str, str]) -> list[str]:
    """systemd.service(5): ${NAME} is replaced within its word, $NAME as a word of its own is split into words."""
    made = []
    for word in line.split():
        if re.fullmatch(r"\$\w+", word):
            made += environment[word[1:]].split()
        else:
            made.append(re.sub(r"\$\{(\w+)\}", lambda match: environment[match[1]], word))
    return made


if sys.argv[1:3] == ["enable", "--now"]:
    start(sys.argv[3])
elif sys.argv[1:] != ["daemon-reload"]:
    raise SystemExit(f"not known here: {sys.argv[1:]}")
