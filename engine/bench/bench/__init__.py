"""Benchmarks of the whole path beside PostgreSQL's own subscription, on real clusters."""
