"""Which lessons the tests can run: the one on frameworks needs PyTorch, which is optional."""

import importlib.util

collect_ignore = [] if importlib.util.find_spec("torch") else ["notebooks/11_frameworks.ipynb"]
