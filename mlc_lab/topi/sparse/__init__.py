"""What is about sparse matrices beside the operators, which are in `topi.nn`."""

from . import utils

__all__ = ["utils"]
