"""Ends all processes that a suite or a benchmark has started with it, however it ends.

A test's servers are no children that end with their parent: PostgreSQL's start program leaves them behind, and a
program that is killed runs no teardown. So a process of its own, the guard, stands above the program, and Linux gives
it every process that has lost its parent below it (PR_SET_CHILD_SUBREAPER). It waits for the program, passes TERM and
INT on, so that the program can clean up, and then ends what is left. Where its own parent goes, the kernel says so
(PR_SET_PDEATHSIG).

As a module: guard() at the program's start, before any thread. As a program: guard.py COMMAND [ARGUMENT...].
"""

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

PATIENCE = 60  # seconds from a signal until the program has cleaned up, stopped servers and all
GRACE = 5  # seconds from TERM to KILL for what the program has left behind
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
FROM_TERMINAL = 0x80  # si_code SI_KERNEL: a key was pressed, and the whole foreground has got the signal

_libc = ctypes.CDLL(None, use_errno=True)


def guard(own_group: bool = False) -> None:
    """From here on this program runs below two guards, one above the other: each sees when the other is killed.

    They are the process that called, which never returns, and one that it forks. With `own_group` the program is of a
    session of its own, and a signal reaches all of it: what a shell waits for as well as the shell.
    """
    assert threading.active_count() == 1, "a fork would lose the other threads"
    ending = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:  # nohup
        ending.remove(signal.SIGHUP)
    signal.pthread_sigmask(signal.SIG_BLOCK, ending | {signal.SIGCHLD})
    parent = os.getppid()
    for is_inner in (False, True):
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
        guard_pid = os.getpid()
        child = os.fork()
        if child:
            _end_with(parent)
            os._exit(_supervise(child, ending, is_inner and own_group))
        parent = guard_pid
    _end_with(parent)
    if own_group:
        os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin without
    for number in ending - {signal.SIGINT}:
        signal.signal(number, _interrupt)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ending | {signal.SIGCHLD})


def _interrupt(number: int, frame: FrameType | None) -> None:
    """TERM runs the teardown as INT does. Once: the next may be the same one, sent to the whole group."""
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _end_with(parent: int) -> None:
    """TERM comes when `parent` has ended; at once where it was quicker."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


def _supervise(child: int, ending: set[signal.Signals], to_group: bool) -> int:
    """Waits for `child`, ends what it has left, and returns its exit status as a shell would tell it."""
    deadline: float | None = None
    status: int | None = None
    while status is None:
        came = signal.sigtimedwait(ending | {signal.SIGCHLD}, 1)
        if came and came.si_signo != signal.SIGCHLD:
            deadline = deadline or time.monotonic() + PATIENCE
            if to_group or came.si_code != FROM_TERMINAL:
                _try_to_send(os.killpg if to_group else os.kill, child, came.si_signo)
        if deadline and time.monotonic() > deadline:
            _try_to_send(os.kill, child, signal.SIGKILL)
        status = _reap(child)
    _end_descendants()
    return status


def _try_to_send(send: Callable[[int, int], None], pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
        send(pid, number)


def _reap(child: int) -> int | None:
    """Takes the status of all that has ended below; that of `child` if it is among it."""
    status = None
    while True:
        try:
            pid, code = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if pid == 0:
            return status
        if pid == child:
            code = os.waitstatus_to_exitcode(code)
            status = code if code >= 0 else 128 - code


def _end_descendants() -> None:
    begun, number = time.monotonic(), signal.SIGTERM
    signalled: set[int] = set()
    while pids := descendants(os.getpid()):
        if number == signal.SIGTERM and time.monotonic() - begun > GRACE:
            number, signalled = signal.SIGKILL, set()
        for pid in pids - signalled:
            _try_to_send(os.kill, pid, number)
        signalled |= pids
        time.sleep(0.02)
        _reap(0)


def descendants(root: int) -> set[int]:
    """All processes below `root` that have not ended."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue  # it has ended meanwhile
            if state != "Z":
                children.setdefault(int(parent), []).append(int(entry.name))
    found: set[int] = set()
    pending = [root]
    while pending:
        below = children.get(pending.pop(), [])
        found.update(below)
        pending += below
    return found


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: guard.py COMMAND [ARGUMENT...]")
    guard(own_group=True)
    os.execvp(sys.argv[1], sys.argv[1:])
