"""`thalweg-admin`, beside the control plane's store."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.support.engine_double import TOKEN, EngineDouble
from tests.support.servers import free_port
from tests.test_commands import Shell, shell  # noqa: F401
from thalweg.kernel.settings import Settings


async def test_administration(shell: Shell, double: tuple[EngineDouble, str], tmp_path: Path) -> None:  # noqa: F811
    admin = shell.admin
    assert "revision" in (await admin("migrate")).out
    made = await admin("create-admin", "grace")
    password = made.out.split("password: ")[1].strip()
    assert "exists already" in (await admin("create-admin", "grace")).out
    login = ["login", "--user", "grace", "--password-stdin"]
    assert (await shell(*login, stdin=password + "\n")).code == 0
    assert (await admin("set-password", "grace", stdin="short\n")).code == 1
    assert (await admin("set-password", "grace", stdin="another password\n")).code == 0
    assert (await shell(*login, stdin="another password\n")).code == 0
    token = (await admin("create-token", "--user", "grace", "--role", "viewer")).out.strip()
    assert (await Shell({**shell.environment, "THALWEG_TOKEN": token})("status")).code == 0
    file = tmp_path / "engine-token"
    file.write_text(TOKEN + "\n")
    enrol = ["enrol-local", "--token-file", str(file), "--url", double[1]]
    assert "enrolled already" not in (await admin(*enrol)).out
    assert "enrolled already" in (await admin(*enrol)).out


async def test_administration_without_a_store(shell: Shell) -> None:  # noqa: F811
    url = f"postgresql://postgres@127.0.0.1:{free_port()}/store"
    away = Shell({**shell.environment, "THALWEG_STORE_URL": url})
    for command in ("migrate", "create-admin"):
        answer = await away.admin(command)
        assert (answer.code, "cure:" in answer.err) == (1, True)


async def test_administration_refuses_what_nobody_could_use(shell: Shell) -> None:  # noqa: F811
    for command in (("create-admin", "x" * 101), ("create-token", "--user", "admin", "--expires-in-days", "0")):
        answer = await shell.admin(*command)
        assert (answer.code, "error:" in answer.err, "Traceback" in answer.err) == (1, True, False), answer.err


@pytest.mark.parametrize("scheme", ["postgres", "mysql"])
async def test_no_program_prints_the_stores_password(shell: Shell, scheme: str) -> None:  # noqa: F811
    url = f"{scheme}://thalweg:a-Secret99@127.0.0.1/store"
    away = Shell({**shell.environment, "THALWEG_STORE_URL": url})
    answer = await away.admin("create-admin", "q")
    assert answer.code == 1
    assert "must begin with postgresql://" in answer.err
    assert "a-Secret99" not in answer.err + answer.out
    with pytest.raises(ValidationError) as refused:
        Settings(store_url=url)
    assert "a-Secret99" not in str(refused.value), "API and collector print it as it is"
