"""SQL over paths: which tables a query reads, what they are, and where errors point."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import millpond as mp
from millpond.base.errors import DirectoryError, PathNotFoundError, PathTypeError, SqlError
from millpond.steward.sql import tables

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millpond.steward.pond import Pond


@pytest.fixture
def pond(tmp_path: Path) -> Pond:
    made = mp.create(tmp_path / "pond")
    with made.write() as tx:
        tx.make_directory("/s")
        tx.write_table("/s/a", [{"site": "a", "level": 1}, {"site": "b", "level": 2}])
        tx.write_table("/s/b", [{"site": "c", "level": 3, "Temp.C": 4.5}])
        tx.write_table("/sites", [{"site": "a", "name": "Weir"}, {"site": "c", "name": "Lock"}])
        tx.write_bytes("/note.txt", b"hello")
        tx.commit()
    with made.write() as tx:
        tx.write_table("/sites", [{"site": "a", "name": "New weir"}])
        tx.commit()
    (tmp_path / "names.csv").write_text("site,owner\na,Ann\n")
    return made


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('SELECT * FROM "/a" JOIN `/b c` x ON true', ["/a", "/b c"]),
        ('SELECT * FROM "/a" UNION ALL SELECT * FROM "/a"', ["/a"]),
        ('SELECT (SELECT max(x) FROM "/in") FROM range(3)', ["/in"]),
        ('SELECT * FROM "/a" WHERE x IN (SELECT x FROM "/b")', ["/a", "/b"]),
        ('WITH a AS (SELECT 1), b AS (SELECT * FROM a) SELECT * FROM b JOIN "/c"', ["/c"]),
        ("WITH a AS (SELECT * FROM a) SELECT * FROM a", ["a"]),
        ("WITH b AS (SELECT * FROM c), c AS (SELECT 1) SELECT * FROM b, c", ["c"]),
        ("WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT * FROM r) SELECT * FROM r", []),
        ("SELECT * FROM (WITH q AS (SELECT 1) SELECT * FROM q) JOIN q USING (x)", ["q"]),
        ('SELECT "x" FROM "csv:///raw/*.csv", LATERAL explode(y)', ["csv:///raw/*.csv"]),
        ('FROM "/a" |> WHERE x > 1', ["/a"]),
        ("VALUES (1), (2)", []),
        ('SELECT \'FROM "/x"\' FROM "/quo""ted"', ['/quo"ted']),
    ],
)
def test_the_tables_of_a_query(text: str, names: list[str]) -> None:
    assert sorted(table.name for table in tables(text)) == sorted(names)


@pytest.mark.parametrize(
    ("text", "kind", "said", "at"),
    [
        ('SELECT *\nFROM "/s/aa"', PathNotFoundError, "did you mean /s/a", (2, 6)),
        ('SELECT * FROM "/x/*"', PathNotFoundError, "nothing matches", (1, 15)),
        ('SELECT * FROM "/s"', DirectoryError, "is a directory", (1, 15)),
        ('SELECT * FROM "/note.txt"', PathTypeError, "has bytes and no rows", (1, 15)),
        ("SELECT * FROM s.a", SqlError, 'quoted as a whole: "/s/a"', (1, 15)),
        ('SELECT * FROM "/s/a" VERSION AS OF 1', SqlError, "/s/a@v3", (1, 15)),
        ('SELECT * FROM "/sites@v9"', PathNotFoundError, "no version 9", (1, 15)),
        ('SELECT * FROM "/s/a"\n  WHERE', SqlError, "can't be read", (2, 3)),
        ('SELECT *\n FROM "/s/a', SqlError, 'begins with " does not end', (2, 7)),
        ("SELECT 1 /* one", SqlError, "does not end", (1, 10)),
    ],
)
def test_errors_point_into_the_text(
    pond: Pond, text: str, kind: type[Exception], said: str, at: tuple[int, int]
) -> None:
    with pytest.raises(kind) as caught:
        pond.sql(text)
    line, column = at
    shown = str(caught.value)
    assert said in shown
    assert f"line {line}, column {column}" in shown
    under = f"\n  {text.splitlines()[line - 1]}\n  {' ' * (column - 1)}^"
    assert under in shown


@pytest.mark.spark
class TestOnSpark:
    @pytest.fixture(autouse=True)
    def _session(self, spark: SparkSession) -> None:
        """The session that all tests share."""

    def rows(self, pond: Pond, text: str) -> list[dict[str, Any]]:
        return pond.sql(text).to_pylist(engine="spark")

    def test_joins_patterns_versions_and_files(self, pond: Pond, tmp_path: Path) -> None:
        joined = self.rows(
            pond,
            f"""
            SELECT a.site, level, name, owner, "Temp.C"
            FROM "/s/*" a JOIN "/sites@v1" USING (site)
            LEFT JOIN "host+csv://{tmp_path}/names.csv" USING (site)
            ORDER BY site
            """,
        )
        assert joined == [
            {"site": "a", "level": 1, "name": "Weir", "owner": "Ann", "Temp.C": None},
            {"site": "c", "level": 3, "name": "Lock", "owner": None, "Temp.C": 4.5},
        ]

    def test_a_path_qualifies_columns(self, pond: Pond) -> None:
        text = 'SELECT "/s/a".level FROM "/s/a" JOIN sites ON "/s/a".site = sites.site'
        assert self.rows(pond, text) == [{"level": 1}]

    def test_a_moment_of_the_past(self, pond: Pond) -> None:
        text = 'SELECT count(*) AS n FROM "/sites"'
        assert pond.read(as_of=1).sql(text).to_pylist(engine="spark") == [{"n": 2}]
        assert self.rows(pond, text) == [{"n": 1}]

    def test_computed_nodes_are_tables(self, pond: Pond) -> None:
        with pond.write() as tx:
            tx.make_factory(
                "/doubled",
                "sql-derived-table",
                {"patterns": {"s": "table:///s/a"}, "query": "SELECT level * 2 AS d FROM s"},
            )
            tx.commit()
        assert self.rows(pond, 'SELECT sum(d) AS s FROM "/doubled"') == [{"s": 6}]

    def test_an_unknown_column_is_pointed_at(self, pond: Pond) -> None:
        text = 'SELECT site,\n       levl\nFROM "/s/a"'
        with pytest.raises(SqlError) as caught:
            pond.sql(text)
        assert (caught.value.line, caught.value.column) == (2, 8)
        assert "`level`" in str(caught.value)
        assert "\n         levl\n         ^" in str(caught.value)
