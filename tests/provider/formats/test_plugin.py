"""A package that is installed elsewhere adds a format by an entry point."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.provider.packages import install

import millpond as mp
from millpond.base.errors import PluginError, SourceError, UrlError
from millpond.provider.formats import format as formats
from millpond.provider.formats import reader

if TYPE_CHECKING:
    from pathlib import Path

MODULE = """
import pyarrow as pa
from millpond.provider.formats.format import Format, Options, Parsed


class WordOptions(Options):
    upper: bool = False


class Words(Format[WordOptions]):
    options = WordOptions

    def parse(self, source, options):
        with source.open() as stream:
            words = stream.read().decode().split()
        if "boom" in words:
            raise RuntimeError("it went off")
        words = [word.upper() for word in words] if options.upper else words
        batch = pa.record_batch({"word": words})
        return Parsed(batch.schema, [batch])


NOTHING = 3
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package."""
    names = {"words": "Words", "nothing": "NOTHING"}
    place, group = tmp_path / "site", "millpond.formats"
    found = install(place, "pond_words", MODULE, group, names, patch=monkeypatch)
    monkeypatch.setattr(formats, "FORMATS", found)
    monkeypatch.setattr(reader, "FORMATS", found)


@pytest.mark.usefixtures("installed")
def test_it_is_a_format_like_others(tmp_path: Path) -> None:
    pond = mp.create(tmp_path / "pond")
    with pond.write() as tx:
        tx.write_bytes("/text", b"low tide")
        tx.write_bytes("/bad", b"boom")
        tx.commit()

    def words(url: str) -> list[str]:
        plan = pond.read().derivation.reading("/").united(url).plan()
        return [row["word"] for row in plan.to_pylist(engine="arrow")]

    assert words("words:///text") == ["low", "tide"]
    assert words("words:///text?upper=true") == ["LOW", "TIDE"]
    with pytest.raises(UrlError, match="options of words are upper"):
        words("words:///text?lower=true")
    with pytest.raises(SourceError, match="/bad can't be read as words: it went off"):
        words("words:///bad")
    with pytest.raises(PluginError, match=r"'nothing' of millpond\.formats is no format"):
        words("nothing:///text")
    with pytest.raises(UrlError, match="did you mean words"):
        words("wrods:///text")


def test_the_built_in_ones_register_the_same_way() -> None:
    known = ("arrow", "csv", "delta", "excelhtml", "json", "oteljson", "parquet", "weblog")
    assert set(known) <= set(formats.FORMATS.names())
    for name in known:
        assert formats.format_named(name).summary
