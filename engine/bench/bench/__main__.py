"""python -m bench SCENARIO [ARGUMENT...]: runs one scenario; its last line is 'SCENARIO ratio: R'."""

import argparse
import importlib
import pkgutil
import sys

import guard

from bench import report, scenarios

SCENARIOS = sorted(module.name for module in pkgutil.iter_modules(scenarios.__path__))


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] not in SCENARIOS:
        sys.exit(f"usage: python -m bench {'|'.join(SCENARIOS)} [ARGUMENT...]")
    guard.guard()
    scenario = importlib.import_module(f"bench.scenarios.{sys.argv[1]}")
    parser = argparse.ArgumentParser(prog=sys.argv[1], description=scenario.__doc__)
    report.add_arguments(parser)
    scenario.add_arguments(parser)
    scenario.run(parser.parse_args(sys.argv[2:]))


if __name__ == "__main__":
    main()
