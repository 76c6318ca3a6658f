"""Code of the control plane that waits for the world outside says so: `outside(...)` of kernel/outside.py.

The function that waits calls it before it does. Connections, look-ups of names, other threads and processes, requests
and Redis count; the store does not.
"""

import ast
import sys
from collections.abc import Iterator

from sources import ROOT, shown

PACKAGE = ROOT / "backend/thalweg"
NO_STORE = ("cli", "lab_relay")  # programs without a connection of the store
WAITS = {
    "create_connection", "create_subprocess_exec", "create_subprocess_shell", "create_unix_connection", "getaddrinfo",
    "gethostbyname", "getnameinfo", "open_connection", "open_unix_connection", "run_in_executor", "sock_connect",
    "start_tls", "to_thread", "urlopen",
}  # fmt: skip
# Calls that wait where they are methods of something of such a name, in lower case.
METHODS = {
    "connect": ("connection", "psycopg"),
    "delete": ("http",), "get": ("http",), "post": ("http",), "put": ("http",), "request": ("http",),
    "send": ("http", "client"), "stream": ("http",),
}  # fmt: skip
REDIS = "redis"  # the property _redis of live/bus.py says it itself
# Functions that need not say it, by file, with the reason.
ALLOWED = {
    "alerting/senders/smtp.py": {"connect": "on a thread of send_mail, which says it"},
    "composition.py": {"close_resources": "closes Redis at the process's end"},
    "db/election.py": {"leads": "the store itself, on a connection of its own"},
    "inspection/login.py": {"run": "on a thread of log_in, which says it"},
    "kernel/networks.py": {
        "_looked_up": "for addresses_of, which says it", "_numeric": "reads an address",
        "look_up": "on a thread of _looked_up",
    },
}


def main() -> int:
    problems = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith(NO_STORE):
            continue
        allowed = ALLOWED.get(name, {})
        found = list(unmarked(path.read_text()))
        problems += [
            f"{shown(path)}:{line}: {call}() waits for the outside; let {function} call outside() before"
            for line, function, call in found if function not in allowed
        ]
        unused = allowed.keys() - {function for _, function, _ in found}
        problems += [f"{shown(path)}: {function} does not wait any more; take it out of ALLOWED" for function in unused]
    print("\n".join(problems) or "all outside work is marked")
    return 1 if problems else 0


def unmarked(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, function and call, of functions that wait and do not say so before."""
    yield from _unmarked_in(ast.parse(text), "the module")


def _unmarked_in(scope: ast.AST, name: str) -> Iterator[tuple[int, str, str]]:
    own = list(_own_nodes(scope))
    calls = [node for node in own if isinstance(node, ast.Call)]
    said = min((call.lineno for call in calls if ast.unparse(call.func) == "outside"), default=sys.maxsize)
    yield from ((call.lineno, name, waits) for call in calls if (waits := _wait(call)) and call.lineno < said)
    for node in own:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _unmarked_in(node, node.name)


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Without those of the functions within, which run at another time."""
    for node in ast.iter_child_nodes(scope):
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _own_nodes(node)


def _wait(call: ast.Call) -> str:
    """The call's name, if it waits."""
    if isinstance(call.func, ast.Name):
        return call.func.id if call.func.id in WAITS else ""
    if not isinstance(call.func, ast.Attribute):
        return ""
    method, owner = call.func.attr, ast.unparse(call.func.value).rpartition(".")[2]
    waits = method in WAITS or any(part in owner.lower() for part in METHODS.get(method, ())) or owner == REDIS
    return f"{owner}.{method}" if waits else ""


if __name__ == "__main__":
    sys.exit(main())
