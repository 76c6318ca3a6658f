"""Findings: rules over a path's figures and what the databases say. Pure."""
