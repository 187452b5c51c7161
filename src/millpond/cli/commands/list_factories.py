"""`pond list-factories`: which factories there are, and what their configurations have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.cli.context import Context


@click.command("list-factories")
@click.argument("name", required=False)
@click.pass_obj
def command(context: Context, *, name: str | None) -> None:
    """Show the factories; of one NAME, the members of its configuration.

    \b
    Examples:
      pond list-factories
      pond list-factories temporal-reduce
    """
    from millpond.fs.factory import FACTORIES

    if name is not None:
        _show(context, name)
        return
    context.out.rows([_facts(each) for each in FACTORIES.names()])


def _facts(name: str) -> dict[str, Any]:
    from millpond.base.errors import PluginError
    from millpond.fs.factory import factory

    try:
        found = factory(name)
    except PluginError as error:  # one that is broken does not hide the others
        return {"factory": name, "creates": None, "what": error.message}
    return {
        "factory": name,
        "creates": getattr(found, "creates", "executable"),
        "what": getattr(found, "summary", "") or None,
    }


def _show(context: Context, name: str) -> None:
    from millpond.fs.factory import factory
    from millpond.provider.factory import ConfiguredFactory

    found = factory(name)
    if not isinstance(found, ConfiguredFactory):
        context.out.facts(_facts(name))
        return
    schema = found.model.model_json_schema()
    if context.as_json:
        context.out.facts({**_facts(name), "schema": schema})
        return
    context.out.rows(list(_members(schema, schema.get("$defs", {}))))


def _members(
    schema: dict[str, Any], models: dict[str, Any], above: tuple[str, ...] = ()
) -> Iterator[dict[str, Any]]:
    """The members of a model, each followed by those of the model in it, indented."""
    wanted = schema.get("required", [])
    for member, facts in schema.get("properties", {}).items():
        yield {
            "member": "  " * len(above) + member,
            "type": _type(facts),
            "default": "required" if member in wanted else _default(facts),
        }
        inside = _model(facts)
        if inside is not None and inside not in above:
            yield from _members(models[inside], models, (*above, inside))


def _model(facts: dict[str, Any]) -> str | None:
    """The model in a type, of which it is a list or the like."""
    if "$ref" in facts:
        return str(facts["$ref"]).rpartition("/")[2]
    within = [*facts.get("anyOf", ()), facts.get("items"), facts.get("additionalProperties")]
    found = (_model(each) for each in within if isinstance(each, dict))
    return next((name for name in found if name is not None), None)


def _default(facts: dict[str, Any]) -> Any:
    from millpond.provider.durations import KIND, in_units

    default = facts.get("default")
    if facts.get(KIND) == "duration" and isinstance(default, int):
        return in_units(default)
    return default


def _type(facts: dict[str, Any]) -> str:
    from millpond.provider.durations import KIND

    if KIND in facts:
        return str(facts[KIND])
    if facts.get("format") == "date-time":
        return "time"
    if "enum" in facts:
        return " | ".join(map(str, facts["enum"]))
    if "anyOf" in facts:
        return " | ".join(_type(each) for each in facts["anyOf"])
    if "$ref" in facts:
        return str(facts["$ref"]).rpartition("/")[2]
    if facts.get("type") == "array":
        return f"list of {_type(facts.get('items', {}))}"
    if facts.get("type") == "object" and isinstance(facts.get("additionalProperties"), dict):
        return f"mapping to {_type(facts['additionalProperties'])}"
    return str(facts.get("const", facts.get("type", "any")))
