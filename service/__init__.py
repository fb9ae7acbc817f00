"""The REST service: routes, admission, encoding, errors, command line."""

__all__ = ["__version__"]

__version__ = "0.1.0"
