"""Apply's metadata cache beside the same table behind a shared mutex (Wong et al. 2009, figure 15)."""

import argparse

from bench import program

COLUMNS = ["readers", "free_per_second", "mutex_per_second", "ratio", "free_ns", "mutex_ns", "missed_ppm"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    program.add_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    program.run(arguments, "metadata", COLUMNS)
