"""Evolutionary search over traces."""

from .replay_trace import ReplayTrace


class EvolutionarySearch(ReplayTrace):
    """Evolves traces."""
