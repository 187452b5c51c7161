"""`template`: files that are rendered from paths of the pond."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

import millpond as mp
from millpond.base.errors import (
    CycleError,
    FactoryConfigError,
    MillpondError,
    PathNotFoundError,
    PathTypeError,
)
from millpond.fs.entry import EntryType
from millpond.provider.reading import Exported

if TYPE_CHECKING:
    from pathlib import Path

    from millpond.steward.pond import Pond

START = datetime(2024, 5, 1, tzinfo=UTC)


def levels(first: int, count: int) -> list[dict[str, Any]]:
    return [
        {"timestamp": START + timedelta(hours=n), "level": float(n)}
        for n in range(first, first + count)
    ]


@pytest.fixture
def pond(tmp_path: Path) -> Pond:
    pond = mp.create(tmp_path / "pond")
    with pond.write() as tx:
        tx.make_directory("/sensors/north", parents=True)
        tx.make_directory("/sensors/south")
        tx.append_series("/sensors/north/weir", levels(0, 3))
        tx.append_series("/sensors/north/lock", levels(10, 2))
        tx.append_series("/sensors/south/weir", levels(5, 1))
        tx.commit()
    return pond


def make(pond: Pond, text: str | None, path: str = "/pages", **more: Any) -> None:
    config = {"in_pattern": "/sensors/*/*", "out_pattern": "$0/$1.md", "template": text, **more}
    config = {name: value for name, value in config.items() if value is not None}
    with pond.write() as tx:
        tx.make_factory(path, "template", config)
        tx.commit()


def put(pond: Pond, path: str, text: str | bytes) -> None:
    with pond.write() as tx:
        tx.write_bytes(path, text if isinstance(text, bytes) else text.encode())
        tx.commit()


def read(pond: Pond, path: str) -> str:
    return pond.read()[path].read_text()


class TestFiles:
    def test_a_file_for_each_group(self, pond: Pond) -> None:
        make(pond, "{{ captures[1] }}: {{ inputs|join(' ') }}\n", out_pattern="by-site/$1.md")
        assert list(pond.read().children("/pages/by-site")) == ["lock.md", "weir.md"]
        assert read(pond, "/pages/by-site/weir.md") == (
            "weir: /sensors/north/weir /sensors/south/weir\n"
        )
        assert read(pond, "/pages/by-site/lock.md") == "lock: /sensors/north/lock\n"
        stat = pond.read().stat("/pages/by-site/weir.md")
        assert stat.entry_type is EntryType.DYNAMIC_FILE

    def test_one_file_for_all(self, pond: Pond) -> None:
        make(pond, "{% for i in inputs %}{{ i.captures|join('-') }} {% endfor %}", out_pattern="a")
        assert read(pond, "/pages/a") == "north-lock north-weir south-weir "

    def test_what_is_added_later_is_there(self, pond: Pond) -> None:
        make(pond, "{{ name }}")
        with pond.write() as tx:
            tx.append_series("/sensors/south/dam", levels(0, 1))
            tx.commit()
        assert list(pond.read().children("/pages/south")) == ["dam.md", "weir.md"]
        assert read(pond, "/pages/south/dam.md") == "dam.md"

    def test_nothing_matches(self, pond: Pond) -> None:
        make(pond, "x", in_pattern="/nowhere/*", out_pattern="$0")
        assert pond.read().children("/pages") == {}

    def test_as_a_file(self, pond: Pond) -> None:
        make(pond, "0123456789", out_pattern="$0-$1")
        with pond.read()["/pages/north-weir"].open() as file:
            file.seek(4)
            assert file.read(3) == b"456"

    def test_bytes_are_utf8(self, pond: Pond) -> None:
        make(pond, "± {{ name }}", out_pattern="ö$1")
        assert pond.read()["/pages/öweir"].read_bytes() == "± öweir".encode()

    def test_a_directory_and_a_file_of_one_name(self, pond: Pond) -> None:
        with pond.write() as tx:
            tx.make_directory("/mixed/x/y", parents=True)
            tx.write_bytes("/mixed/x/one.md", b"")
            tx.write_bytes("/mixed/x/y/two.md", b"")
            tx.commit()
        make(pond, "", in_pattern="/mixed/**/*.md", out_pattern="$0")
        with pytest.raises(FactoryConfigError, match="'x' would be a directory and something else"):
            pond.read().children("/pages")


class TestWhatATemplateSees:
    def test_facts(self, pond: Pond) -> None:
        put(pond, "/note", "hello")
        text = "{{ inputs[0].kind }} {{ inputs[0].size }} {{ inputs[0].modified.isoformat() }}"
        make(pond, text, in_pattern="/note", out_pattern="n")
        stat = pond.read().stat("/note")
        assert stat.modified is not None
        assert read(pond, "/pages/n") == f"data 5 {stat.modified.isoformat()}"

    def test_size_of_a_series_of_bytes(self, pond: Pond) -> None:
        for line in (b"one\n", b"three\n"):
            with pond.write() as tx:
                tx.write_bytes("/log", line, series=True)
                tx.commit()
        make(pond, "{{ inputs[0].size }}", in_pattern="/log", out_pattern="n")
        assert read(pond, "/pages/n") == "10"

    def test_schema_and_rows(self, pond: Pond) -> None:
        make(
            pond,
            "{% for c in inputs[0].schema %}{{ c.name }}={{ c.type }};{% endfor %}"
            "{% for row in inputs[0].rows(limit=2) %}{{ row.level }},{% endfor %}"
            "{{ inputs[0].rows()|list|length }}",
        )
        assert read(pond, "/pages/north/weir.md") == "timestamp=timestamp;level=double;0.0,1.0,3"

    def test_rows_as_json(self, pond: Pond) -> None:
        make(pond, "{{ inputs[0].rows()|list|tojson }}", out_pattern="$0-$1.json")
        found = json.loads(read(pond, "/pages/south-weir.json"))
        assert found == [{"timestamp": "2024-05-01T05:00:00+00:00", "level": 5.0}]

    def test_rows_of_a_format(self, pond: Pond) -> None:
        put(pond, "/raw.csv", "site;mm\nWeir;3\n")
        make(
            pond,
            "{{ inputs[0].rows()|map(attribute='mm')|sum }} {{ inputs[0].schema[1].name }}",
            in_pattern="csv:///raw.csv?delimiter=;",
            out_pattern="n",
        )
        assert read(pond, "/pages/n") == "3 mm"

    def test_times(self, pond: Pond) -> None:
        for first in (20, 3):
            with pond.write() as tx:
                tx.append_series("/sensors/north/weir", levels(first, 2))
                tx.commit()
        make(pond, "{{ inputs[0].first_time.hour }} {{ inputs[0].last_time.hour }}")
        assert read(pond, "/pages/north/weir.md") == "0 21"
        assert read(pond, "/pages/south/weir.md") == "5 5"

    def test_times_within_bounds(self, pond: Pond) -> None:
        with pond.write() as tx:
            tx.append_series("/sensors/north/weir", [*levels(1, 1), *levels(20, 1)])
            tx.commit()
        make(pond, "{{ inputs[0].first_time }} {{ inputs[0].last_time }}")

        def seen(first: int, last: int) -> str:
            with pond.write() as tx:
                hours = [START + timedelta(hours=h, minutes=-1) for h in (first, last)]
                tx.set_bounds("/sensors/north/weir", first=hours[0], last=hours[1])
                tx.commit()
            return read(pond, "/pages/north/weir.md")

        # Files hold the hours 0, 1, 2 and 1, 20.
        assert seen(1, 3) == "2024-05-01 01:00:00+00:00 2024-05-01 02:00:00+00:00"
        assert seen(2, 30) == "2024-05-01 02:00:00+00:00 2024-05-01 20:00:00+00:00"
        assert seen(5, 6) == "None None"

    def test_times_of_what_is_computed(self, pond: Pond) -> None:
        points = [{"name": "level", "components": [{"type": "line", "slope": 24}]}]
        series = {
            "start": "2024-01-01",
            "end": "2024-01-02T23:00",
            "interval": "1h",
            "points": points,
        }
        with pond.write() as tx:
            tx.make_factory("/made", "synthetic-timeseries", series)
            tx.commit()
        text = "{{ inputs[0].first_time }} {{ inputs[0].last_time }} {{ inputs[0].size }}"
        make(pond, text, in_pattern="/made", out_pattern="n")
        found = read(pond, "/pages/n")
        assert found == "2024-01-01 00:00:00+00:00 2024-01-02 23:00:00+00:00 None"

    def test_a_table_has_no_time(self, pond: Pond) -> None:
        with pond.write() as tx:
            tx.write_table("/t", [{"a": 1}])
            tx.commit()
        make(pond, "{{ inputs[0].first_time }}", in_pattern="/t", out_pattern="n")
        assert read(pond, "/pages/n") == "None"

    def test_variables(self, pond: Pond) -> None:
        put(pond, "/dark.md", "dark {{ variables.title }} {{ path }}")
        make(pond, None, template_file="/{{ theme }}.md")
        pond.variables = {"theme": "dark", "title": "Levels"}
        assert read(pond, "/pages/north/weir.md") == "dark Levels /pages/north/weir.md"
        pond.variables = {"theme": "dark"}
        with pytest.raises(FactoryConfigError, match=r"/dark.md:1: .*'title'"):
            read(pond, "/pages/north/weir.md")

    def test_the_text_is_for_jinja_alone(self, pond: Pond) -> None:
        make(pond, "{{ name }} ${env:HOME}")
        pond.variables = {"name": "other"}
        assert read(pond, "/pages/north/weir.md") == "weir.md ${env:HOME}"

    def test_in_a_directory_of_nodes(self, pond: Pond) -> None:
        config = {
            "in_pattern": "/../../sensors/*/{{ which }}",
            "out_pattern": "$0.md",
            "template": "{{ name }}",
        }
        entry = {"name": "pages", "factory": "template", "config": config}
        with pond.write() as tx:
            tx.make_factory("/site", "dynamic-dir", {"entries": [entry]})
            tx.commit()
        pond.variables = {"which": "weir"}
        assert list(pond.read().children("/site/pages")) == ["north.md", "south.md"]
        assert read(pond, "/site/pages/north.md") == "north.md"

    def test_exported(self, pond: Pond) -> None:
        make(pond, "{{ exported['/sensors/north/weir'] }} {{ inputs[0].files|join(' ') }}")
        scope = pond.read()
        scope.derivation.exported = {
            "/sensors/north/weir": Exported("a b/", ("a b/year=2024/x.parquet",)),
            "/pages/north/weir.md": Exported("pages/w.md", ("pages/w.md",)),
        }
        assert scope.read_bytes("/pages/north/weir.md") == (
            b"../a%20b/ ../a%20b/year=2024/x.parquet"
        )
        make(pond, "{{ exported|length }}")
        assert read(pond, "/pages/north/weir.md") == "0"


class TestTemplates:
    def test_files_and_relative_paths(self, pond: Pond) -> None:
        with pond.write() as tx:
            tx.make_directory("/site/parts", parents=True)
            tx.write_bytes("/site/base.html", b"<b>{% block body %}{% endblock %}</b>")
            tx.write_bytes("/site/parts/level.html", b"{{ inputs[0].path }}{% include '/foot' %}")
            tx.write_bytes("/foot", b"!")
            page = b"{% extends 'base.html' %}{% block body %}{% include 'parts/level.html' %}"
            tx.write_bytes("/site/page.html", page + b"{% endblock %}")
            tx.commit()
        make(pond, None, "/site/out", template_file="../page.html")
        assert read(pond, "/site/out/north/lock.md") == "<b>/sensors/north/lock!</b>"

    def test_another_version_of_it_is_another_file(self, pond: Pond) -> None:
        put(pond, "/page.md", "one")
        make(pond, None, template_file="/page.md")
        assert read(pond, "/pages/north/weir.md") == "one"
        put(pond, "/page.md", "two")
        assert read(pond, "/pages/north/weir.md") == "two"

    @pytest.mark.parametrize(
        ("out", "expected"),
        [("x.html", "&lt;1&gt;"), ("x.XML", "&lt;1&gt;"), ("x.md", "<1>"), ("html", "<1>")],
    )
    def test_escaping_follows_the_name(self, pond: Pond, out: str, expected: str) -> None:
        make(pond, "{{ '<1>' }}", out_pattern=out)
        assert read(pond, f"/pages/{out}") == expected

    def test_it_gives_the_same_each_time(self, pond: Pond) -> None:
        text = "{{ inputs }} {{ inputs[0].rows() }} {{ inputs[0].rows }} {{ exported }}"
        make(pond, text)
        first = read(pond, "/pages/north/weir.md")
        assert read(mp.open(pond.location), "/pages/north/weir.md") == first
        assert "0x" not in first

    @pytest.mark.parametrize("text", ["{{ [1, 2]|random }}", "{{ lipsum() }}"])
    def test_chance_is_left_out(self, pond: Pond, text: str) -> None:
        make(pond, text)
        with pytest.raises(MillpondError, match=r"'random'|'lipsum'"):
            read(pond, "/pages/north/weir.md")

    @pytest.mark.parametrize(
        "text",
        [
            "{{ inputs.__class__.__mro__ }}",
            "{{ inputs[0]._reading }}",
            "{{ inputs.append(1) }}",
            "{{ variables.update({'a': 1}) }}",
        ],
    )
    def test_the_sandbox(self, pond: Pond, text: str) -> None:
        make(pond, text)
        with pytest.raises(FactoryConfigError, match=r"unsafe|not safely"):
            read(pond, "/pages/north/weir.md")


class TestMistakes:
    @pytest.mark.parametrize(
        ("config", "message"),
        [
            ({"template": None}, "template_file, a path, or template, a text"),
            ({"template_file": "/t"}, "and not both"),
            ({"colour": "red"}, "colour: there is no such member"),
            ({"out_pattern": None}, "out_pattern: it is missing"),
            ({"template": "a\n{% if %}"}, "template: line 2: Expected an expression"),
            ({"template": "{{ inputs "}, "template: line 1: "),
        ],
    )
    def test_configurations(self, pond: Pond, config: dict[str, Any], message: str) -> None:
        with pytest.raises(FactoryConfigError, match=message):
            make(pond, "x", **config)

    @pytest.mark.parametrize(
        ("text", "line", "message"),
        [
            ("a\n\n{{ nmae }}", 3, "'nmae' is undefined"),
            ("{{ inputs[0].colour }}", 1, "has no attribute 'colour'"),
            ("a\n{{ 1 / 0 }}", 2, "division by zero"),
            ("a\n\n{{ 1|nothing }}", 3, "No filter named 'nothing'"),
            ("a\n{{ captures[7] }}", 2, "has no element 7"),
            ("{{ range(10000000) }}", 1, "Range too big"),
            ("a\n{% include 'other.md' %}", None, "there is no template /other.md"),
        ],
    )
    def test_line_and_message(self, pond: Pond, text: str, line: int | None, message: str) -> None:
        put(pond, "/page.md", text)
        make(pond, None, template_file="/page.md")
        with pytest.raises(MillpondError, match=message) as found:
            read(pond, "/pages/north/weir.md")
        assert "/pages/north/weir.md" in found.value.message
        assert found.value.hint
        if line is not None:
            assert found.value.message.startswith(f"/page.md:{line}: ")

    def test_a_mistake_in_what_is_included(self, pond: Pond) -> None:
        put(pond, "/part.md", "\n\n{{ nmae }}")
        make(pond, "{% include '/part.md' %}")
        with pytest.raises(FactoryConfigError, match=r"^/part.md:3: 'nmae' is undefined"):
            read(pond, "/pages/north/weir.md")

    def test_a_mistake_in_a_text(self, pond: Pond) -> None:
        make(pond, "\n{{ nmae }}")
        with pytest.raises(FactoryConfigError, match=r"^/pages \(template\):2: 'nmae'"):
            read(pond, "/pages/north/weir.md")

    def test_no_template(self, pond: Pond) -> None:
        make(pond, None, template_file="/page.md")
        assert list(pond.read().children("/pages")) == ["north", "south"]
        with pytest.raises(PathNotFoundError, match=r"there is no template /page.md, which /pages"):
            read(pond, "/pages/north/weir.md")

    def test_no_text(self, pond: Pond) -> None:
        put(pond, "/page.md", b"a\xff")
        make(pond, None, template_file="/page.md")
        with pytest.raises(FactoryConfigError, match=r"/page.md: it is no text in UTF-8: .* 1"):
            read(pond, "/pages/north/weir.md")

    def test_bytes_have_no_rows(self, pond: Pond) -> None:
        put(pond, "/note", "hello")
        make(pond, "{{ inputs[0].rows()|list }}", in_pattern="/note", out_pattern="n")
        with pytest.raises(PathTypeError, match="/note is a data: it has no rows"):
            read(pond, "/pages/n")

    @pytest.mark.parametrize(
        ("out", "message"),
        [
            ("$2", r"asks for \$2, but the pattern has 2 wildcards"),
            ("", "it names nothing"),
            ("../x", "leads elsewhere"),
            ("a/../b", "leads elsewhere"),
            ("a//b", "can't be a name"),
            ("x@v3", "can't be a name"),
        ],
    )
    def test_names_that_can_not_be(self, pond: Pond, out: str, message: str) -> None:
        with pytest.raises(FactoryConfigError, match=f"out_pattern: .*{message}") as caught:
            make(pond, "x", out_pattern=out)
        assert caught.value.place == ("out_pattern",)
        assert not pond.read().exists("/pages")

    def test_names_that_captures_make(self, pond: Pond) -> None:
        make(pond, "x", in_pattern="/sensors/north/**/weir", out_pattern="a/$0/b")
        with pytest.raises(FactoryConfigError, match="'a//b' for /sensors/north/weir: ''"):
            pond.read().children("/pages")

    def test_of_itself(self, pond: Pond) -> None:
        make(pond, "x", in_pattern="/**/weir*")
        with pytest.raises(CycleError, match="/pages is computed from itself"):
            pond.read().children("/pages")
