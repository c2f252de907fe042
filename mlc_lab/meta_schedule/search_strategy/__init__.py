"""Search strategies: which candidate to measure next."""

from .candidate import MeasureCandidate
from .evolutionary_search import EvolutionarySearch
from .greedy_search import GreedySearch
from .replay_func import ReplayFunc
from .replay_trace import ReplayTrace
from .search_strategy import PySearchStrategy, SearchStrategy

create = SearchStrategy.create
#: the strategies by name
MAKERS = {"evolutionary": EvolutionarySearch, "replay-trace": ReplayTrace,
          "replay-func": ReplayFunc, "e-greedy": GreedySearch, "random": ReplayTrace}

__all__ = ["EvolutionarySearch", "GreedySearch", "MeasureCandidate", "PySearchStrategy",
           "ReplayFunc", "ReplayTrace", "SearchStrategy", "create"]
