"""Modes of streams and of the ways to their destinations."""

from enum import StrEnum


class StreamMode(StrEnum):
    """COMBINED: one engine captures and applies. PROPAGATION: one captures and sends, another receives and applies.
    FAN_OUT: one capture and one queue for several destinations, each with a backlog of its own."""

    COMBINED = "combined"
    PROPAGATION = "propagation"
    FAN_OUT = "fan-out"
