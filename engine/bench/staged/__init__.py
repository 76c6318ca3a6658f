"""The paper's experiment (seed 000, section VI.D): a workload staged in the WAL, then drained at full speed."""
