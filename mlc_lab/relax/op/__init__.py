"""Relax operators under TVM's names."""
from . import registry  # noqa: F401
