"""Errors that teach: what is wrong, where in the program, why it matters, what would help.

`render_source` underlines a place in a text; script errors point into the user's own file, refused
primitives and ill-formed programs point into the printed program.
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Sequence

from ..reading import MLCError, shortened


#: characters of a longer line that are shown
_LINE = 400


class DiagnosticError(MLCError):
    """A mistake in a script: message with file, line, column and the offending text.

    Attributes: `message`, `filename`, `line` (from 1), `column` (from 1), `source_line`.
    """

    def __init__(self, message: str, filename: str = "<script>", line: int = 0, column: int = 0,
                 end_column: int = 0, source_line: str = "", hint: str = "") -> None:
        self.message, self.filename = shortened(message), filename
        self.line, self.column, self.end_column = line, column, end_column
        self.source_line, self.hint = source_line, shortened(hint)
        super().__init__(self.render())

    @property
    def span(self) -> Span:
        """Where it is, as TVM's diagnostics say it."""
        return Span(self.filename, self.line, self.line, self.column, self.end_column)

    def render(self) -> str:
        """The full text of the error."""
        out = [f"{self.filename}:{self.line}:{self.column}: {self.message}"]
        if self.source_line:
            first, text = self.column - 1, self.source_line.rstrip("\n")
            width = max(1, self.end_column - self.column)
            number = f"{self.line:>5} | "
            if len(text) > _LINE:  # only the part around the place
                start = max(0, min(first - _LINE // 4, len(text) - _LINE))
                text, first = f"...{text[start:start + _LINE]}...", first - start + 3
                width = max(1, min(width, _LINE - first))
            out.append(number + text)
            out.append(" " * len(number) + " " * first + "^" * width)
        if self.hint:
            out.append(f"hint: {self.hint}")
        return "\n".join(out)


class Span(NamedTuple):
    """A place in a script: lines and columns from 1."""

    source_name: str
    line: int
    end_line: int
    column: int
    end_column: int


class Diagnostics(NamedTuple):
    """What a renderer is given: the errors of one script (here always one)."""

    diagnostics: tuple[DiagnosticError, ...]


Renderer = Callable[[Diagnostics], object]
_renderer: list[Renderer] = []


def override_renderer(render_func: Renderer | None) -> None:
    """Have a function told of the mistakes in scripts, before they are raised; None ends that."""
    _renderer[:] = [] if render_func is None else [render_func]


def told(error: DiagnosticError) -> DiagnosticError:
    """The error, after the renderer was told of it."""
    for render in _renderer:
        render(Diagnostics((error,)))
    return error


class WellFormedError(MLCError, ValueError):
    """A program that breaks a rule of the IR. `rule` names it; `node` is the offending node.

    A checker says more: in words what is wrong, the statement that it is in, what might help.
    """

    statement: Any
    reason: str
    hint: str

    def __init__(self, message: str, rule: str = "", node: Any = None) -> None:
        self.rule, self.node = rule, node
        super().__init__(message)


def render_source(text: str, spans: Sequence[tuple[int, int, int, int]],
                  context: int | None = None) -> str:
    """`text` with `spans` underlined by ^^^ lines.

    A span is (first line, first column, last line, end column), lines from 0, columns from 0, end
    exclusive. `context` keeps only that many lines around the spans (None keeps everything).
    """
    lines = text.split("\n")
    marks: dict[int, list[tuple[int, int]]] = {}
    for line0, col0, line1, col1 in spans:
        for number in range(line0, min(line1, len(lines) - 1) + 1):
            content = lines[number]
            start = col0 if number == line0 else len(content) - len(content.lstrip())
            stop = col1 if number == line1 else len(content.rstrip())
            if stop > start:
                marks.setdefault(number, []).append((start, stop))
    keep = set(range(len(lines)))
    if context is not None and marks:
        keep = {n + d for n in marks for d in range(-context, context + 1)}
    out: list[str] = []
    skipped = False
    for number, content in enumerate(lines):
        if number not in keep:
            if not skipped:
                out.append("...")
            skipped = True
            continue
        skipped = False
        out.append(content)
        if number in marks:
            under = [" "] * max(stop for _, stop in marks[number])
            for start, stop in marks[number]:
                under[start:stop] = "^" * (stop - start)
            out.append("".join(under))
    return "\n".join(out)
