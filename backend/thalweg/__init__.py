"""Control plane of Thalweg: the API, the collector and the command line."""

__version__ = "0.1.0"
