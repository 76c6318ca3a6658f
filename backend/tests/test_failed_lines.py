"""The lines that scripts/test.sh prints of a failed suite: those of the failures, of its own build tree."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "failed_lines.py"

# Two build trees one after the other, as the suite of sanitizers runs them; what failed stands in the first.
LOG = """Test project /b/build/address
    Start 1: queue
    Start 2: spill
1/3 Test #1: queue ............................***Failed    0.06 sec
[ RUN      ] Good.Before
[       OK ] Good.Before (0 ms)
[ RUN      ] BacklogConsumerTest.ConfirmedSegmentsGoFromTheFront
backlog_consumer_test.cc:183: Failure
Which is: 2
[  FAILED  ] BacklogConsumerTest.ConfirmedSegmentsGoFromTheFront (0 ms)
[ RUN      ] Good.After
[       OK ] Good.After (0 ms)
[  FAILED  ] BacklogConsumerTest.ConfirmedSegmentsGoFromTheFront

    Start 3: corpus
2/3 Test #2: spill ............................Subprocess aborted***Exception:   0.02 sec
[ RUN      ] Spill.Dies
==1==ERROR: AddressSanitizer: heap-use-after-free

3/3 Test #3: corpus ...........................***Timeout   9.02 sec
slow-unit-1

33% tests passed, 3 tests failed out of 3
Test project /b/build/thread
    Start 1: queue
1/1 Test #1: queue ............................   Passed    0.03 sec
the end
"""


def printed(tmp_path: Path, log: str) -> str:
    (tmp_path / "log").write_text(log)
    command = [sys.executable, str(SCRIPT), str(tmp_path), str(tmp_path / "log")]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_failed_c_plus_plus_tests_show_their_own_output(tmp_path: Path) -> None:
    text = printed(tmp_path, LOG)
    assert "── address queue: BacklogConsumerTest.ConfirmedSegmentsGoFromTheFront" in text
    assert "Which is: 2" in text
    assert "── address spill: Spill.Dies, during which it ended" in text
    assert "heap-use-after-free" in text
    assert "── address corpus" in text
    assert "slow-unit-1" in text
    assert "Good." not in text
    assert "thread" not in text


def test_other_tests_show_what_their_junit_file_holds(tmp_path: Path) -> None:
    (tmp_path / "system.xml").write_text(
        '<testsuites><testsuite><testcase classname="test_a" name="passes"/><testcase classname="test_a" name="fails">'
        '<failure message="assert 1 == 2">def fails():\nE  assert 1 == 2</failure></testcase></testsuite></testsuites>'
    )
    assert printed(tmp_path, "a log\n") == "── test_a fails\ndef fails():\nE  assert 1 == 2\n"


def test_the_end_of_the_log_where_nothing_says_what_failed(tmp_path: Path) -> None:
    assert "the last line" in printed(tmp_path, "first\n" + "line\n" * 500 + "the last line\n")
