"""The tiles of a product on a GPU, as the decisions of a trace of MultiLevelTilingGPU have them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..schedule import Trace
    from ..target.gpus import GPU


@dataclass(frozen=True)
class Product:
    """A sum of products: extents of its spatial and reduced axes, and of each input how its
    dimensions depend on these axes, as coefficients by the axis' number, spatial ones first."""

    spatial: tuple[int, ...]
    reduced: tuple[int, ...]
    inputs: tuple[tuple[dict[int, int], ...], ...]
    nbytes: int
    gpu: GPU


class Tiles(NamedTuple):
    """What a trace decides for the loops of a product: of each spatial axis the factors for blocks,
    virtual threads, threads and a thread's results, of each reduced one steps and depth."""

    spatial: list[list[int]]
    reduced: list[list[int]]

    @property
    def threads(self) -> int:
        """Of a block."""
        return math.prod(t[2] for t in self.spatial)

    @property
    def results(self) -> int:
        """Results that a thread keeps."""
        return math.prod(t[1] * t[3] for t in self.spatial)

    def copies(self, product: Product) -> list[int]:
        """Elements of each input that a block copies to shared memory in one step."""
        of_block = [t[1] * t[2] * t[3] for t in self.spatial] + [t[1] for t in self.reduced]
        return [math.prod(extent_of(d, of_block) for d in dims) for dims in product.inputs]


def tiles_of(trace: Trace, product: Product | None) -> Tiles | None:
    """The tiles that a trace decides; None for one that does not tile the product."""
    if product is None:
        return None
    tiles = [list(trace.decisions[at]) for at, inst in enumerate(trace.insts)
             if inst.kind.name == "SamplePerfectTile" and trace.decisions.get(at)]
    made = Tiles([t for t in tiles if len(t) == 4], [t for t in tiles if len(t) == 2])
    fits = (len(made.spatial), len(made.reduced)) == (len(product.spatial), len(product.reduced))
    return made if fits else None


def extent_of(dim: dict[int, int], sizes: list[int]) -> int:
    """Elements along a dimension that axes of these sizes reach."""
    return 1 + sum(abs(c) * (sizes[axis] - 1) for axis, c in dim.items())


__all__ = ["Product", "Tiles", "extent_of", "tiles_of"]
