"""Hypothesis strategies for histories, on the disk in a random layout."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from hypothesis import strategies as st
from tests.kernel.history.generate import random_history
from tests.kernel.history.layout import random_layout
from tests.kernel.history.write import write_history

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hypothesis.vendor.pretty import RepresentationPrinter
    from tests.kernel.history.generate import Shape
    from tests.kernel.history.layout import Layout
    from tests.kernel.history.model import History

SEEDS = st.integers(0, 2**32 - 1)


@dataclass(frozen=True, slots=True)
class Case:
    """A history and how it lies on the disk; its text says how to get it again."""

    history: History
    layout: Layout
    text: str

    def __repr__(self) -> str:
        return f"{self.text}, {self.layout}"

    def _repr_pretty_(self, printer: RepresentationPrinter, cycle: bool) -> None:
        printer.text(repr(self))

    @property
    def versions(self) -> range:
        """The versions that can be read."""
        return range(self.layout.first, self.history.latest + 1)

    @contextmanager
    def written(self) -> Iterator[str]:
        """The table in a directory of its own."""
        with tempfile.TemporaryDirectory() as directory:
            yield str(write_history(self.history, Path(directory) / "table", self.layout))


def case(seed: int, layout_seed: int, commits: int, shape: Shape | None = None) -> Case:
    """The case of these seeds."""
    history = random_history(Random(seed), commits=commits, shape=shape)
    text = f"case({seed}, {layout_seed}, {commits}, {shape})"
    return Case(history, random_layout(Random(layout_seed), history), text)


@st.composite
def cases(draw: st.DrawFn, *, most_commits: int = 10, shape: Shape | None = None) -> Case:
    """Any history in any layout."""
    commits = draw(st.integers(1, most_commits))
    return case(draw(SEEDS), draw(SEEDS), commits, shape)
