"""TreeModel: random trees that correct a rough estimate of the time.

The estimate of features.py (the slowest of arithmetic, loads and each level of the memory) orders
candidates before anything was measured. With measurements, trees (scikit-learn's
ExtraTreesRegressor) learn the logarithm of the factor by which the estimate is wrong, from the
features of every store.

The trees are grown at random and averaged, after P. Geurts, D. Ernst and L. Wehenkel, "Extremely
randomized trees" (Machine Learning, 2006). Boosted trees, which TVM uses, overfitted the noise of a
few dozen measurements: where most candidates are within a few percent of each other they ranked
unseen programs worse than the estimate alone.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
from typing import TYPE_CHECKING, Any, Iterator, Sequence

import numpy as np

from ...ir.diagnostics import MLCError
from ...machine.hardware import hardware_of
from ...reading import DataError
from ...reading.arrays import read_arrays
from ..defaults import is_gpu
from ..feature_extractor import FeatureExtractor
from ..features import features_of
from ..gpu_features import gpu_features_of
from .cost_model import CostModel

if TYPE_CHECKING:
    from ..context import TuneContext

#: measurements before trees are grown
_ENOUGH = 8
#: cycles a second, only to give the estimate a unit of time
_CLOCK = 3.0e9


def _load() -> None:
    """Import scikit-learn while the first candidates are built: it takes a second."""
    with contextlib.suppress(ImportError):
        importlib.import_module("sklearn.ensemble")


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """So little data gains nothing from threads, and they would disturb what is being timed."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


class TreeModel(CostModel):
    """See the file's text. One model serves all tasks of a search; features are comparable.

    `extractor`: a feature extractor of one's own, or its name; the mean of a candidate's rows is
    learnt from then, and nothing is estimated.
    """

    def __init__(self, *, extractor: Any = None, num_trees: int = 100,
                 max_depth: int | None = None, seed: int = 0, **_: object) -> None:
        self.extractor = None if extractor is None else FeatureExtractor.create(extractor)
        self.num_trees, self.max_depth, self.seed = num_trees, max_depth, seed
        self.rows: list[np.ndarray] = []
        self.wrong: list[float] = []  # log2(measured / estimated)
        self.groups: list[str] = []
        self.best: dict[str, float] = {}
        self.trees: Any = None
        threading.Thread(target=_load, daemon=True).start()

    @property
    def trained(self) -> bool:
        """Whether trees were grown."""
        return self.trees is not None

    def _features(self, context: TuneContext, candidates: Sequence[Any]
                  ) -> tuple[np.ndarray, np.ndarray]:
        if self.extractor is not None:
            return self._extracted(context, candidates)
        hardware = None if is_gpu(context.target) else hardware_of(context.target)
        for candidate in candidates:
            if candidate.features is not None:
                continue
            if hardware is None:
                candidate.features = gpu_features_of(
                    candidate.decided or candidate.sch.trace, context.product)
            else:
                row, cycles = features_of(candidate.sch.mod, hardware)
                candidate.features = row, max(cycles, 1.0) / _CLOCK
        rows = np.stack([c.features[0] for c in candidates])
        return rows, np.log2([c.features[1] for c in candidates])

    def _extracted(self, context: TuneContext, candidates: Sequence[Any]
                   ) -> tuple[np.ndarray, np.ndarray]:
        """The features that the extractor gives, once for each candidate."""
        assert self.extractor is not None
        new = [c for c in candidates if c.features is None]
        found = self.extractor.extract_from(context, new) if new else []
        if len(found) != len(new):
            raise ValueError(f"{self.extractor!r} gave {len(found)} arrays for {len(new)} "
                             "candidates")
        for candidate, array in zip(new, found):
            rows = np.asarray(array.numpy() if hasattr(array, "numpy") else array, "float32")
            if rows.ndim != 2 or not rows.size:
                raise ValueError(f"{self.extractor!r} gave an array of shape {rows.shape}: there "
                                 "is a row for each store, of at least one number")
            candidate.features = rows.mean(0), 1.0
        return np.stack([c.features[0] for c in candidates]), np.zeros(len(candidates))

    def update(self, context: TuneContext, candidates: Sequence[Any], results: Sequence[Any]
               ) -> None:
        """Learn from a batch; failures are left out."""
        good = [(c, r.time) for c, r in zip(candidates, results)
                if r.status == "ok" and r.time]
        if not good:
            return
        rows, estimate = self._features(context, [c for c, _ in good])
        key = context.task_name
        for row, guess, (_, seconds) in zip(rows, estimate, good):
            self.rows.append(row)
            self.wrong.append(float(np.log2(seconds) - guess))
            self.groups.append(key)
            self.best[key] = min(self.best.get(key, seconds), seconds)
        if len(self.rows) >= _ENOUGH:
            self._grow()

    def _grow(self) -> None:
        try:
            from sklearn.ensemble import ExtraTreesRegressor
        except ImportError:
            raise MLCError("the cost model \"xgb\" needs scikit-learn: pip install "
                           "\"mlc-lab[tune]\", or choose cost_model=\"none\"") from None
        self.trees = ExtraTreesRegressor(
            self.num_trees, max_depth=self.max_depth, min_samples_leaf=2, max_features=0.3,
            random_state=self.seed)
        with _one_thread():
            self.trees.fit(np.stack(self.rows), np.array(self.wrong))

    def log_time(self, context: TuneContext, candidates: Sequence[Any]) -> np.ndarray:
        """log2 of the predicted seconds of each candidate."""
        rows, estimate = self._features(context, candidates)
        if self.trees is None:
            own = [w for w, g in zip(self.wrong, self.groups) if g == context.task_name]
            return estimate + (float(np.median(own)) if own else 0.0)
        with _one_thread():
            return estimate + self.trees.predict(rows)

    def predict(self, context: TuneContext, candidates: Sequence[Any]) -> np.ndarray:
        """Predicted throughput, relative to the best measured (or to the best of these)."""
        times = self.log_time(context, candidates)
        best = self.best.get(context.task_name)
        base = np.log2(best) if best is not None else float(np.min(times))
        return np.exp2(base - times)

    def save(self, path: str) -> None:
        """Write the measurements; the trees are grown again from them."""
        with open(path, "wb") as file:  # a file, since savez would change the name of a path
            np.savez(file, rows=np.stack(self.rows) if self.rows else np.zeros((0, 0)),
                     wrong=np.array(self.wrong), groups=np.array(self.groups),
                     names=np.array(list(self.best)), best=np.array(list(self.best.values())))

    def load(self, path: str) -> None:
        """Read the measurements that `save` wrote. Raises DataError for another file."""
        arrays = read_arrays(path, ("rows", "wrong", "groups", "names", "best"))
        rows, wrong, groups, names, best = arrays
        if rows.ndim != 2 or any(a.ndim != 1 for a in arrays[1:]) or (
                len(rows) != len(wrong) or len(wrong) != len(groups) or len(names) != len(best)
                or any(a.dtype.kind != "f" or not np.isfinite(a).all()
                       for a in (rows, wrong, best) if a.size)):
            raise DataError(f"{path} holds no measurements of a cost model")
        self.rows, self.wrong = list(rows), list(wrong)
        self.groups = [str(g) for g in groups]
        self.best = dict(zip(map(str, names), map(float, best)))
        if len(self.rows) >= _ENOUGH:
            self._grow()
