"""A run as text, CSV and HTML."""
