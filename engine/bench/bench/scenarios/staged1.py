"""One-row transactions staged in the WAL, then drained: what a commit costs."""

import argparse

from bench.scenarios import staged


def add_arguments(parser: argparse.ArgumentParser) -> None:
    staged.add_arguments(parser, transactions=200_000)


def run(arguments: argparse.Namespace) -> None:
    staged.run(arguments, "staged1", rows=1)
