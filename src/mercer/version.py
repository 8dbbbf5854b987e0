"""The version of the package, for all who write it down."""

__all__ = ["__version__"]

__version__ = "0.1.0"
