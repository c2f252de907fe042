"""Cost models: predictions of how fast candidates are."""

from .cost_model import CostModel, PyCostModel
from .random_model import RandomModel
from .tree_model import TreeModel

XGBModel = TreeModel  # TVM's name; its trees are boosted
create = CostModel.create
#: the models by name
MAKERS = {"xgb": TreeModel, "trees": TreeModel, "boosted-trees": TreeModel,
          "random": RandomModel, "none": lambda: None}

__all__ = ["CostModel", "PyCostModel", "RandomModel", "TreeModel", "XGBModel", "create"]
