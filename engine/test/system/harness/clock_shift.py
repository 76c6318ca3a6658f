"""A wall clock that a test steps while thalwegd runs; the monotonic clock stays as it is."""

import shutil
import struct
import subprocess
from pathlib import Path

from harness.engine import Engine

SOURCE = Path(__file__).with_name("clock_shift.c")


def compiler() -> str | None:
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang-19")


class ClockShift:
    """For engines that are started after take(). `directory` is the test's own."""

    def __init__(self, directory: Path) -> None:
        self.library = directory / "clock_shift.so"
        self.file = directory / "clock_shift"
        self.step_to(0)
        found = compiler()
        assert found
        subprocess.run([found, "-shared", "-fPIC", "-O1", "-o", str(self.library), str(SOURCE)], check=True)

    def take(self, engine: Engine) -> None:
        engine.environment = {"LD_PRELOAD": str(self.library), "THALWEG_TEST_CLOCK_SHIFT": str(self.file)}

    def step_to(self, seconds: int) -> None:
        """The engines' wall clock shows the machine's plus these seconds from now on."""
        value = struct.pack("=q", seconds)
        if self.file.exists():
            with self.file.open("r+b") as file:  # in place: the engines have mapped it
                file.write(value)
        else:
            self.file.write_bytes(value)
