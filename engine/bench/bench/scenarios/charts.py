"""The console's chart beside uPlot alone, in Chromium: ten updates a second of eight lines."""

import argparse
import functools
import json
import queue
import shutil
import statistics
import subprocess
import tempfile
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bench.report import Report

METHOD = """headless Chromium without a graphics card shows {series} lines of {points} samples; {rate} times a second
one sample is added to each and the oldest one goes, for {seconds} s. main thread: milliseconds that an update keeps it,
from the new samples until the chart is drawn. frames: milliseconds from one to the next, at 60 Hz never below 16.7.
bare: uPlot alone, without legend, summary and formats. ours: the console's chart. The page is a production build.
The ratio is bare's median main-thread time over ours: uPlot's share of the chart."""
SLOW_FRAME_MS = 50.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--page", type=Path, required=True, help="the built page's directory")
    parser.add_argument("--chromium", default="chromium")
    parser.add_argument("--series", type=int, default=8)
    parser.add_argument("--points", type=int, default=3600)
    parser.add_argument("--rate", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=20)


def run(arguments: argparse.Namespace) -> None:
    report = Report("charts", arguments)
    wanted = {name: getattr(arguments, name) for name in ("series", "points", "rate", "seconds")}
    report.method(METHOD.format(**wanted))
    measured = _in_browser(arguments, "&".join(f"{name}={value}" for name, value in wanted.items()))
    report.say(f"{'chart':<6} {'updates':>7}  main thread ms: {'p50':>6} {'p99':>6}   frames ms: {'p50':>6} {'p99':>6} "
               f"{'longest':>7} {'over 50':>7}  tasks over 50 ms")
    medians = {}
    for method, measurement in measured.items():
        updates, frames = sorted(measurement["updates"]), sorted(measurement["frames"])
        medians[method] = statistics.median(updates)
        slow = sum(frame > SLOW_FRAME_MS for frame in frames)
        report.figure(
            f"{method:<6} {len(updates):>7}  {'':<15} {medians[method]:>6.2f} {_p99(updates):>6.2f}   {'':<10} "
            f"{statistics.median(frames):>6.1f} {_p99(frames):>6.1f} {frames[-1]:>7.1f} {slow:>7}  "
            f"{len(measurement['longTasks'])}",
            method=method, updates=len(updates), main_thread_p50_ms=medians[method], main_thread_p99_ms=_p99(updates),
            frame_p50_ms=statistics.median(frames), frame_p99_ms=_p99(frames), longest_frame_ms=frames[-1],
            frames=len(frames), frames_over_50_ms=slow, tasks_over_50_ms=len(measurement["longTasks"]))
    report.finding(f"one chart of ours keeps the main thread {medians['ours'] * arguments.rate / 10:.1f} % of the time")
    report.ratio(medians["bare"] / medians["ours"])


def _p99(ascending: list[float]) -> float:
    return ascending[min(len(ascending) - 1, int(len(ascending) * 0.99))]


def _in_browser(arguments: argparse.Namespace, query: str) -> dict[str, dict[str, list[float]]]:
    """Waits for the result that the page posts when it is done."""
    results: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    class Page(SimpleHTTPRequestHandler):
        def do_POST(self) -> None:
            results.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """The server's own lines would stand between the report's."""

    profile = tempfile.mkdtemp(prefix="thalweg-bench-")
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Page, directory=str(arguments.page))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = subprocess.Popen(
            [arguments.chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--no-proxy-server",
             "--disable-background-networking", "--window-size=1280,800", f"--user-data-dir={profile}",
             f"http://127.0.0.1:{server.server_port}/?{query}", "--remote-debugging-port=0"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return results.get(timeout=2 * arguments.seconds + 60)
        except queue.Empty:
            raise SystemExit("the page sent no results: open it in a browser and read its console") from None
        finally:
            browser.terminate()
            browser.wait(timeout=20)
            server.shutdown()
            shutil.rmtree(profile, ignore_errors=True)
