"""The advisor's rig: every stage of a path made slow by a real cause, on real clusters and engines."""
