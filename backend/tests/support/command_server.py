"""The command line without its start: a process that has imported what `thalweg` imports, and forks for each command.

A start costs ten times what most commands do. The program in `directory` asks for a fork and gives it its arguments,
environment, folder, standard streams and exit code; what is the command line's own is imported in the fork, because it
looks at the environment. `tests/test_cli_program.py` runs the program itself.
"""

import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MODULE = "thalweg.cli.main"
PACKAGE = "thalweg.cli"
# The fork answers with the exit code, or with nothing if it was killed.
CLIENT = """#!{python} -IS
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({path!r})
asked = json.dumps({{"arguments": sys.argv[1:], "environment": dict(os.environ), "folder": os.getcwd()}}).encode()
socket.send_fds(server, [len(asked).to_bytes(4, "big")], [0, 1, 2])
server.sendall(asked)
code = server.recv(1)
sys.exit(code[0] if code else "the command was killed")
"""


@contextmanager
def command_server(directory: Path) -> Iterator[Path]:
    """Gives the folder in which `thalweg` is such a program."""
    path = directory / "socket"
    programs = directory / "bin"
    programs.mkdir()
    client = programs / "thalweg"
    client.write_text(CLIENT.format(python=sys.executable, path=str(path)))
    client.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(64)
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(listener.fileno())], pass_fds=[listener.fileno()],
            cwd=Path(__file__).resolve().parents[2], stdin=subprocess.DEVNULL,
        )  # fmt: skip
    yield programs
    process.kill()
    process.wait()


def _read(asker: socket.socket, size: int) -> bytes:
    read = b""
    while len(read) < size:
        part = asker.recv(size - len(read))
        if not part:
            raise ConnectionError("the asker has gone")
        read += part
    return read


def _take_streams(streams: list[int]) -> None:
    for own, given in enumerate(streams):
        os.dup2(given, own)
        os.close(given)
    sys.stdin = open(0)  # noqa: SIM115
    sys.stdout = open(1, "w", buffering=1 if os.isatty(1) else -1)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace")  # noqa: SIM115


def _run(arguments: list[str]) -> int:
    sys.argv = ["thalweg", *arguments]
    try:
        runpy.run_module(MODULE, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # as the interpreter ends
        traceback.print_exc()
        return 1
    return 0


def _serve(asker: socket.socket) -> None:
    """In the fork."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    size, streams, _, _ = socket.recv_fds(asker, 4, 3)
    asked = json.loads(_read(asker, int.from_bytes(size, "big")))
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    _take_streams(streams)
    code = _run(asked["arguments"])
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    asker.sendall(bytes([code]))


def _main(listener: socket.socket) -> None:
    importlib.import_module(MODULE)
    for name in [name for name in sys.modules if name == PACKAGE or name.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
    gc.freeze()
    while True:
        asker, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            try:
                _serve(asker)
            except BaseException:  # nothing of a fork goes on in the server's loop
                traceback.print_exc()
            os._exit(0)
        asker.close()


if __name__ == "__main__":
    _main(socket.socket(fileno=int(sys.argv[1])))
