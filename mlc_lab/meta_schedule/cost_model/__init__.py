"""Cost models: predictions of how fast candidates are."""

from .cost_model import CostModel, PyCostModel
from .random_model import RandomModel
from .tree_model import TreeModel

XGBModel = TreeModel  # TVM's name; its trees are boosted
create = CostModel.create

__all__ = ["CostModel", "PyCostModel", "RandomModel", "TreeModel", "XGBModel", "create"]
