"""Relax, the language of whole models."""
from . import op  # noqa: F401
from .expr import *  # noqa: F403
from .struct_info import *  # noqa: F403
