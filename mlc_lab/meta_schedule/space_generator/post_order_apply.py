"""PostOrderApply."""
from .space_generator import SpaceGenerator
class PostOrderApply(SpaceGenerator):
    """x"""
