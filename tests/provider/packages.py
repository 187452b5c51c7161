"""A package of somebody else, found as pip would have left it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from millpond.base.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pytest


def install(
    site: Path, module: str, source: str, group: str, names: Mapping[str, str], *,
    patch: pytest.MonkeyPatch,
) -> Registry[object]:  # fmt: skip
    """One module with entry points; what finds those of the group now."""
    info = site / f"{module}-1.0.dist-info"
    info.mkdir(parents=True)
    (site / f"{module}.py").write_text(source)
    name = module.replace("_", "-")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    entries = "\n".join(f"{name} = {module}:{value}" for name, value in names.items())
    (info / "entry_points.txt").write_text(f"[{group}]\n{entries}\n")
    patch.syspath_prepend(str(site))
    patch.delitem(sys.modules, module, raising=False)
    return Registry(group=group)
