"""Real clusters, the real thalwegd and exact comparison: what the system tests and the benchmarks share."""
