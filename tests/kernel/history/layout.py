"""How a history may lie on the disk: checkpoints, compactions, hints, checksums, deleted commits.

Whatever the layout, a reader must see the same table at every version that can still be read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from random import Random

    from tests.kernel.history.model import History

Kind: TypeAlias = Literal["classic", "multi", "v2_json", "v2_parquet"]
Stats: TypeAlias = Literal["json", "both", "parsed"]
Hint: TypeAlias = Literal["missing", "right", "older", "garbage", "empty", "elsewhere"]
Checksum: TypeAlias = Literal["right", "garbage", "empty"]
Decoy: TypeAlias = Literal["missing part", "empty checkpoint", "empty compaction", "odd names"]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint; `files` are parts, or sidecars of a V2 checkpoint (then maybe 0)."""

    version: int
    kind: Kind
    files: int = 0
    stats: Stats = "json"
    keeps_tombstones: bool = True


@dataclass(frozen=True, slots=True)
class Layout:
    """What is beside the commits, and from which version on commits are still there.

    `first` is 0 or the version of a checkpoint. `decoys` are files that a reader has to see
    through, by version.
    """

    checkpoints: tuple[Checkpoint, ...] = ()
    compactions: tuple[tuple[int, int], ...] = ()
    checksums: tuple[tuple[int, Checksum], ...] = ()
    decoys: tuple[tuple[int, Decoy], ...] = ()
    hint: Hint = "missing"
    first: int = 0

    @property
    def keeps_stats(self) -> bool:
        """Whether the text of statistics can be read back everywhere."""
        return all(one.stats != "parsed" for one in self.checkpoints)


def random_layout(rng: Random, history: History) -> Layout:
    """Any layout that fits a history."""
    checkpoints: list[Checkpoint] = []
    checksums: list[tuple[int, Checksum]] = []
    decoys: list[tuple[int, Decoy]] = []
    for version in range(history.latest + 1):
        while rng.random() < 0.25:
            checkpoints.append(_checkpoint(rng, history, version))
        if rng.random() < 0.4:
            checksums.append((version, rng.choice(["right", "right", "garbage", "empty"])))
        if rng.random() < 0.1:
            kinds: list[Decoy]
            kinds = ["missing part", "empty checkpoint", "empty compaction", "odd names"]
            decoys.append((version, rng.choice(kinds)))
    versions = sorted({one.version for one in checkpoints})
    first = rng.choice([0, 0, *versions])
    compactions = []
    for _ in range(rng.choice([0, 0, 1, 2])):
        low, high = sorted(rng.choices(range(history.latest + 1), k=2))
        if first <= low < high and (low, high) not in compactions:
            compactions.append((low, high))
    hints: list[Hint] = ["missing", "garbage", "empty"]
    if any(version >= first for version in versions):
        hints += ["right", "right", "right", "older", "elsewhere"]
    return Layout(
        checkpoints=tuple(one for one in _distinct(checkpoints) if one.version >= first),
        compactions=tuple(compactions),
        checksums=tuple(one for one in checksums if one[0] >= first),
        decoys=tuple(one for one in decoys if one[0] >= first),
        hint=rng.choice(hints),
        first=first,
    )


def _checkpoint(rng: Random, history: History, version: int) -> Checkpoint:
    features = history.state(version).protocol.get("readerFeatures", [])
    kinds: list[Kind] = ["classic", "multi"]
    if "v2Checkpoint" in features:
        kinds += ["v2_json", "v2_parquet", "v2_parquet"]
    kind = rng.choice(kinds)
    files = {"classic": 1, "multi": rng.randint(2, 3)}.get(kind, rng.randint(0, 3))
    return Checkpoint(
        version,
        kind,
        files=files,
        stats=rng.choice(["json", "json", "both", "parsed"]),
        keeps_tombstones=rng.random() < 0.7,
    )


def _distinct(checkpoints: list[Checkpoint]) -> list[Checkpoint]:
    """At most one of every kind at a version, as a name can be there only once."""
    return list({(one.version, one.kind, one.files): one for one in checkpoints}.values())
