"""Checks the deployment without running it: docker-compose.yml and the Dockerfiles (what they name exists,
what they repeat agrees), and systemd's units (systemd-analyze)."""

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import yaml

from sources import ROOT, shown

ONE_SHOT = {"secrets", "setup", "demo-data"}
SERVICES = ONE_SHOT | {"store", "redis", "engine", "api", "collector", "demo-source", "demo-destination", "demo-relay",
                        "load"}
SECRETS = "/var/lib/thalweg/secrets"
INSTRUCTION = re.compile(r"^(FROM|COPY|RUN|ENV|ARG|WORKDIR|USER|ENTRYPOINT|CMD|EXPOSE|VOLUME|HEALTHCHECK)\s+(.*)$")
ROOT_ONLY = re.compile(r"^(User|ProtectHome|CapabilityBoundingSet)=|/etc/thalweg|/opt/thalweg")
"""Settings that only root's manager can obey, and places that only root can write."""
LISTENERS = {"thalweg-api", "thalweg-engine"}
SCRIPT = re.compile(r"scripts/[\w/]+\.sh")


def main() -> int:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    dockerfiles = sorted((ROOT / "deploy").glob("*.Dockerfile"))
    problems = _service_problems(compose)
    problems += [problem for path in dockerfiles for problem in _dockerfile_problems(path)]
    used = {service.get("build", {}).get("dockerfile") for service in compose["services"].values()}
    problems += [f"{shown(path)}: no service is built from it" for path in dockerfiles if shown(path) not in used]
    problems += _port_problems(compose)
    units = sorted((ROOT / "deploy/systemd").glob("*.service"))
    problems += _unit_problems(units) + _user_unit_problems(units)
    print("\n".join(problems) or
          f"{len(compose['services'])} services, {len(dockerfiles)} Dockerfiles, {len(units)} units")
    return 1 if problems else 0


def _service_problems(compose: dict[str, Any]) -> list[str]:
    services = compose["services"]
    problems = [f"docker-compose.yml: no service '{name}'" for name in sorted(SERVICES - services.keys())]
    for name, service in services.items():
        where = f"docker-compose.yml: {name}"
        dockerfile = service.get("build", {}).get("dockerfile", "")
        if not (ROOT / dockerfile).is_file():
            problems.append(f"{where}: Dockerfile '{dockerfile}' does not exist")
        problems += [f"{where}: depends on '{other}', which does not exist"
                     for other in service.get("depends_on", {}) if other not in services]
        named = [volume.split(":")[0] for volume in service.get("volumes", []) if not volume.startswith((".", "/"))]
        problems += [f"{where}: volume '{volume}' is not declared" for volume in named
                     if volume not in compose["volumes"]]
        shared = str(service.get("network_mode", "")).removeprefix("service:")
        if shared and shared not in services:
            problems.append(f"{where}: shares the network of '{shared}', which does not exist")
        problems += _script_problems(where, f"{service.get('command', '')} {service.get('entrypoint', '')}")
        if name not in ONE_SHOT and "healthcheck" not in service:
            problems.append(f"{where}: has no health check")
    return problems + _secret_problems(services)


def _secret_problems(services: dict[str, Any]) -> list[str]:
    """Each service has a volume of secrets of its own; only the one that makes them sees all."""
    owners: dict[str, list[str]] = {}
    for name, service in services.items():
        for volume in service.get("volumes", []):
            source, target = volume.split(":")[:2]
            if target == SECRETS:
                owners.setdefault(source, []).append(name)
    return [f"docker-compose.yml: {', '.join(users)} share the secrets of volume '{volume}'"
            for volume, users in owners.items() if len(users) > 1]


def _dockerfile_problems(path: Path) -> list[str]:
    problems: list[str] = []
    stages: set[str] = set()
    text = path.read_text().replace("\\\n", " ")
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = INSTRUCTION.match(line)
        if not match:
            problems.append(f"{shown(path)}: cannot read '{line}'")
            continue
        name, rest = match.groups()
        if name == "FROM":
            image, *alias = rest.split(" AS ")
            if image not in stages and not re.search(r":\d+\.\d+", image):
                problems.append(f"{shown(path)}: '{image}' is not pinned to a point release")
            stages.update(alias)
        elif name == "COPY":
            problems += _copy_problems(path, rest.split(), stages)
        problems += _script_problems(shown(path), rest)
    return problems


def _copy_problems(path: Path, words: list[str], stages: set[str]) -> list[str]:
    options = [word for word in words if word.startswith("--")]
    origin = next((word.removeprefix("--from=") for word in options if word.startswith("--from=")), None)
    if origin is not None:
        return [] if origin in stages else [f"{shown(path)}: COPY from the unknown stage '{origin}'"]
    sources = [word for word in words if not word.startswith("--")][:-1]
    return [f"{shown(path)}: COPY source '{source}' does not exist" for source in sources
            if not any(ROOT.glob(source))]


def _script_problems(where: str, text: str) -> list[str]:
    return [f"{where}: '{name}' does not exist" for name in SCRIPT.findall(text) if not (ROOT / name).is_file()]


def _port_problems(compose: dict[str, Any]) -> list[str]:
    """Published ports must be those of scripts/settings.sh, and on loopback unless a setting opens them."""
    settings = subprocess.run(
        ["bash", "-c", f"source {ROOT}/scripts/settings.sh; echo $THALWEG_STORE_PORT $THALWEG_SOURCE_PORT "
         "$THALWEG_DESTINATION_PORT $THALWEG_RELAY_PORT $THALWEG_REDIS_PORT $THALWEG_API_PORT $THALWEG_ENGINE_PORT "
         "$THALWEG_PROPAGATION_PORT"],
        capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin", "THALWEG_HOME": "/nonexistent"})
    known = settings.stdout.split()
    opens = {known[-1]: "THALWEG_PROPAGATION_BIND"}
    problems = []
    for name, service in compose["services"].items():
        for published in service.get("ports", []):
            binding, _, container = str(published).rpartition(":")
            address, _, host = binding.rpartition(":")
            if address not in ("127.0.0.1", f"${{{opens.get(host)}:-127.0.0.1}}"):
                problems.append(f"docker-compose.yml: {name}: port {published} is published beyond loopback")
            if host != container or host not in known:
                problems.append(f"docker-compose.yml: {name}: port {published} is not one of scripts/settings.sh")
    return problems


def _unit_problems(units: list[Path]) -> list[str]:
    """systemd reads them as it would at its start, but for the programs, which are not installed here."""
    problems = [f"{shown(unit)}: runs as root" for unit in units
                if not re.search(r"^User=(?!root)", unit.read_text(), re.M)]
    problems += [f"{shown(unit)}: has no LimitNOFILE, and everybody may open connections" for unit in units
                 if unit.stem in LISTENERS and not re.search(r"^LimitNOFILE=", unit.read_text(), re.M)]
    with tempfile.TemporaryDirectory() as directory:
        drop_in = Path(directory) / "thalweg-engine.service.d/tls.conf"
        drop_in.parent.mkdir()
        drop_in.write_text((ROOT / "deploy/systemd/thalweg-engine-tls.conf").read_text())
        return problems + _manager_problems("--system", units, Path(directory))


def _user_unit_problems(units: list[Path]) -> list[str]:
    """The recipe of README.md makes user units: it is run as it stands there, in a home of its own."""
    page = ROOT / "deploy/systemd/README.md"
    recipe = re.search(r"^## Without root$.*?```sh\n(.*?)^loginctl", page.read_text(), re.M | re.S)
    if recipe is None:
        return [f"{shown(page)}: has no recipe for units without root"]
    with tempfile.TemporaryDirectory() as home:
        made = subprocess.run(["bash", "-euc", recipe[1]], capture_output=True, text=True, check=False, cwd=ROOT,
                              env=os.environ | {"HOME": home})
        if made.returncode:
            return [f"{shown(page)}: the recipe fails: {made.stderr.strip()}"]
        written = sorted((Path(home) / ".config/systemd/user").iterdir())
        problems = [] if [unit.name for unit in written] == [unit.name for unit in units] else [
            f"{shown(page)}: the recipe makes {', '.join(unit.name for unit in written) or 'no units'}"]
        for unit in written:
            problems += [f"{shown(page)}: the recipe leaves in {unit.name}: {line}"
                         for line in unit.read_text().splitlines() if ROOT_ONLY.search(line)]
            if "\nWantedBy=default.target\n" not in unit.read_text():
                problems.append(f"{shown(page)}: no target of users' wants {unit.name}")
            program = re.search(r"^ExecStart=(\S+)", unit.read_text(), re.M)
            if program is None or program[1].removeprefix(f"{ROOT}/") not in _programs():
                problems.append(f"{shown(page)}: {unit.name} runs {program and program[1]}, which no build makes")
        checked = Path(home) / "checked"
        checked.mkdir()
        return problems + _manager_problems("--user", written, checked)


def _programs() -> set[str]:
    """Programs of scripts/build.sh, by their places in a checkout."""
    scripts = tomllib.loads((ROOT / "backend/pyproject.toml").read_text())["project"]["scripts"]
    return {"build/release/src/daemon/thalwegd", *(f".venv/bin/{name}" for name in scripts)}


def _manager_problems(manager: str, units: list[Path], directory: Path) -> list[str]:
    """Of systemd's reading of copies in `directory`, without the programs, which may not be installed here."""
    copies = []
    for unit in units:
        copies.append(directory / unit.name)
        copies[-1].write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit.read_text(), flags=re.M))
    read = subprocess.run(["systemd-analyze", manager, "verify", *map(str, copies)], capture_output=True, text=True,
                          check=False, env=os.environ | {
                              "SYSTEMD_UNIT_PATH": f"{directory}:", "XDG_RUNTIME_DIR": str(directory)})
    problems = [line for line in read.stderr.splitlines() if line]
    if read.returncode and not read.stderr:
        problems.append(f"systemd-analyze {manager} ended with status {read.returncode}")
    return problems


if __name__ == "__main__":
    sys.exit(main())
