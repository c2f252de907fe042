"""Measure callbacks."""

from .measure_callback import (
    AddToDatabase,
    MeasureCallback,
    PyMeasureCallback,
    RemoveBuildArtifact,
    UpdateCostModel,
)

create = MeasureCallback.create

__all__ = ["AddToDatabase", "MeasureCallback", "PyMeasureCallback", "RemoveBuildArtifact",
           "UpdateCostModel", "create"]
