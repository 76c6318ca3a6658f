"""Seed 003's experiment: one large commit, and what spilling it costs the destination."""
