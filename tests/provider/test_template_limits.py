"""What a template may cost: time, and the size of what it makes, whichever way it asks for it."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from millpond.base.errors import FactoryConfigError
from millpond.provider.templating.jinja import check_syntax, render

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST = 1 << 20
SECONDS = 0.2

LARGE = [
    "{{ 'x' * 3000000000 }}",
    "{{ 3000000000 * 'x' }}",
    "{{ ([0] * 3000000000)|length }}",
    "{{ [] + [0] * 500000 }}",
    "{{ (10 ** (10 ** 8)) > 1 }}",
    "{{ (2 ** 100000 * 2 ** 100000) > 1 }}",
    "{{ 'x'|center(1000000000) }}",
    "{{ 'x'.center(1000000000) }}",
    "{{ 'x'.ljust(width) }}",
    "{{ 'x'.rjust(1000000000) }}",
    "{{ '7'.zfill(1000000000) }}",
    "{{ '\t'.expandtabs(1000000000) }}",
    "{{ ('\t' * 1000000).expandtabs(1000000) }}",
    "{{ ('x' * 1000000).replace('', 'x' * 1000000)|length }}",
    "{{ ('x' * 1000000)|replace('x', 'y' * 1000) }}",
    "{{ '%1000000000d' % 1 }}",
    "{{ '%*d' % (1000000000, 1) }}",
    "{{ '%.1000000000f' % 1 }}",
    "{{ '%1000000000d' % 1.5 }}",
    "{{ '%1000000000d'|format(1) }}",
    "{{ '%(n)1000000000d'|format(n=1) }}",
    "{{ '{:>1000000000}'.format(1) }}",
    "{{ '{:>{}}'.format(1, 1000000000) }}",
    "{{ '{0:>{w}}'.format(1, w=1000000000) }}",
    "{{ ('%1000000d' * 1000) % 1 }}",
    "{{ ('%s' * 100000) % ('x' * 100000,) }}",
    "{{ 'x'|indent(1000000000, true) }}",
    "{{ ('a\n' * 100000)|indent(100000) }}",
    "{{ ('a\n' * 100000)|indent('x' * 100000) }}",
    "{{ ('a ' * 100000)|wordwrap(1, wrapstring='x' * 100000) }}",
    "{{ [1]|batch(1000000000, 0)|list }}",
    "{{ [1]|slice(1000000000)|list }}",
    "{{ [1]|batch(fill_with=0, linecount=1000000000)|list }}",
    "{{ 1.5|round(1000000000, 'ceil') }}",
    "{{ [1]|tojson(indent=1000000000) }}",
    "{{ range(100000)|map('replace', '1', 'x' * 100000)|list|length }}",
    "{{ (['x' * 1000000] * 100000)|join }}",
    "{{ ('x' * 1000000).join(['a'] * 100000) }}",
    "{{ [['x' * 1000000] * 100000] }}",
    "{{ ([['x' * 1000000] * 1000] * 100)|string|length }}",
    "{{ ([['x' * 1000000] * 1000] * 100)|tojson|length }}",
    "{{ ([['x' * 1000000] * 1000] * 100)|pprint|length }}",
    "{{ '' ~ (['x' * 1000000] * 100000) }}",
    "{{ '%s' % (['x' * 1000000] * 100000) }}",
    "{{ {'a': 'x' * 1000000} }}" * 3,
    "{{ 'x'.translate({120: 'y' * 1000000}) * 2 }}",
    "{{ ('x' * 1000000).split('x')|length }}",
    "{{ ('x' * 1000000)|list|length }}",
    "{{ (1).to_bytes(1000000000, 'big') }}",
    "{{ range(50000)|map('list')|sum(start=[]) }}",
    "{% for i in range(100000) %}{{ 'x' * 1000 }}{% endfor %}",
    """{% set b = 'x' * 1000 %}
    {% for i in range(10000) %}{% set c %}{{ b }}{{ b }}{% endset %}{% endfor %}""",
    "{% set n = namespace(x='x') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
    "{% set n = namespace(x='x') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
    "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
    """{% set n = namespace(x=[1]) %}{% for i in range(99) %}
    {% set n.x %}{{ n.x }}{{ n.x }}{% endset %}{% endfor %}""",
    """{% macro m(n) %}
    {% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% else %}xxxxxxxx{% endif %}{% endmacro %}
    {{ m(40) }}""",
    """{% set n = namespace(x=[]) %}{% for i in range(100000) %}{% for j in range(100000) %}
    {% set n.x = [n.x, 'x' * 1000] %}{% endfor %}{% endfor %}""",
    """{% set l = range(100000)|list %}{% set n = namespace(x=[]) %}
    {% for i in range(100000) %}{% set n.x = [n.x, l[1:]] %}{% endfor %}""",
]
LONG = [
    "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
    "{% for i in range(100000) %}{% for j in range(100000) if j < 0 %}{% endfor %}{% endfor %}",
    """{% macro m(n) %}
    {% if n %}{% set a = m(n - 1) %}{% set b = m(n - 1) %}{% endif %}{% endmacro %}
    {{ m(60) }}""",
    """{% for i in range(100000) %}{% if range(100000)|map('abs')|select('odd')|list %}{% endif %}
    {% endfor %}""",
    "{% for i in range(100000) %}{% if 'z' in 'x' * 1000000 %}{% endif %}{% endfor %}",
]
DEEP = [
    "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}",
    "{% if 1 %}" * 3000 + "{% endif %}" * 3000,
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{% include 'self' %}",
]


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLPOND_LIMITS_TEMPLATE_BYTES", str(MOST))
    monkeypatch.setenv("MILLPOND_LIMITS_TEMPLATE_SECONDS", str(SECONDS))


@pytest.fixture
def memory() -> Iterator[None]:
    """A test that takes much more memory than the limits allow fails."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 64 * MOST
    finally:
        tracemalloc.stop()


def rendered(text: str, **values: Any) -> str:
    return render("/t", lambda _: text, values, out="/x.txt").decode()


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("text", LARGE)
def test_what_is_too_large_is_refused_before_it_is_made(text: str) -> None:
    with pytest.raises(FactoryConfigError) as caught:
        rendered(text, width=10**9)
    assert "limits.template_" in (caught.value.hint or ""), caught.value
    assert str(caught.value).startswith("/t")


@pytest.mark.parametrize("text", LONG)
def test_loops_end(text: str) -> None:
    with pytest.raises(FactoryConfigError) as caught:
        rendered(text)
    assert "limits.template_" in (caught.value.hint or ""), caught.value


@pytest.mark.parametrize("text", DEEP)
def test_what_is_too_deep_is_an_error_in_words(text: str) -> None:
    with pytest.raises(FactoryConfigError, match="it is nested too deeply") as caught:
        rendered(text)
    assert caught.value.hint


def test_syntax_that_is_too_deep() -> None:
    with pytest.raises(ValueError, match="it is nested too deeply"):
        check_syntax(DEEP[0])


def test_what_is_within_the_limits_is_made() -> None:
    text = (
        "{% set n = namespace(sum=0) %}{% for i in range(5000) %}{% set n.sum = n.sum + i %}"
        "{% endfor %}{{ n.sum }} {{ 'x' * 3 ~ [1, 2, 3, 4, 5, 6][1:3] }} {{ 'a'|center(9) }} "
        "{{ '%5.1f' % 1.25 }} {{ '{:>6}'.format('b') }} {{ [3, 1, 2]|sort|join('-') }} "
        "{{ '2026-03-01 1234567890123456789 %s' % 'x' }} {{ 2 ** 64 }} {{ {'a': 1}|tojson }} "
        "{{ {1700000000000: 'k'}.get(1700000000000) }} {{ 'n'|int(5000000) }}"
        "{% filter upper %}{% macro m(x) %}<{{ x }}>{% endmacro %} {{ m('y') }}{% endfilter %}"
    )
    assert rendered(text) == (
        "12497500 xxx[2, 3]     a       1.2      b 1-2-3 "
        '2026-03-01 1234567890123456789 x 18446744073709551616 {"a": 1} k 5000000 <Y>'
    )


def test_markup_stays_markup() -> None:
    text = "{{ '<a>'|e ~ '<' }} {{ ['<', '<b>'|safe]|join }} {{ '<%s>'|safe % '<' }}"
    found = render("/t", lambda _: text, {}, out="/x.html").decode()
    assert found == "&lt;a&gt;&lt; &lt;<b> <&lt;>"
