"""trees"""
from .random_model import RandomModel
class TreeModel(RandomModel):
    """x"""
