"""e-greedy search over traces."""

from .replay_trace import ReplayTrace


class GreedySearch(ReplayTrace):
    """The best by the model, and now and then a random one."""
