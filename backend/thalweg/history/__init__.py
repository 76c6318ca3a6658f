"""Samples of the past, in the control store: written by the collector, read by charts and by the analysis."""
