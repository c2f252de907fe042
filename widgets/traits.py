"""anywidget and traitlets where they are installed, and else what stands in for them.

A view is one file: its widget, and its page, which needs neither. Without them the classes of the
widgets can be defined, and say what is missing when one is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import traitlets
    from anywidget import AnyWidget
else:
    try:
        import traitlets
        from anywidget import AnyWidget
    except ImportError as _error:
        _MISSING = (
            f"the notebook views need {_error.name}, which is not installed.\n"
            "Install it with:  pip install 'mlc-lab[lab]'\n"
            "Without it, `html(path)` writes the same view as an HTML page."
        )

        class AnyWidget:
            """A widget that cannot be made."""

            def __init__(self, *_: Any, **__: Any) -> None:
                raise ImportError(_MISSING)

        class _Trait:
            def __init__(self, *_: Any, **__: Any) -> None:
                pass

            def tag(self, **_: Any) -> _Trait:
                return self

        class traitlets:
            """The traits that views have."""

            Bool = Dict = Enum = Int = List = Unicode = _Trait

            @staticmethod
            def observe(*_: str) -> Any:
                return lambda method: method

            validate = default = observe

__all__ = ["AnyWidget", "traitlets"]
