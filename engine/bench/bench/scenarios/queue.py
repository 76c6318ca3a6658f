"""The engine's queue beside one with a mutex (Wong et al. 2009, figure 14)."""

import argparse

from bench import program

COLUMNS = ["consumers", "spmc_per_second", "mutex_per_second", "ratio", "lcr_per_second", "spmc_ns", "lcr_ns"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    program.add_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    program.run(arguments, "queue", COLUMNS)
