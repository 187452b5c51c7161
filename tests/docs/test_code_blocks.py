"""Every Python block of the README, CONTRIBUTING and docs/ runs, top to bottom, file by file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python( no-run)?\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)")


def blocks(page: Path) -> list[tuple[int, str]]:
    """The runnable blocks of a page with the line they begin at."""
    text = page.read_text()
    return [
        (text.count("\n", 0, match.start()) + 2, match[2])
        for match in BLOCK.finditer(text)
        if not match[1]
    ]


@pytest.mark.spark
@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: p.name)
def test_blocks_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: object
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__doc__"}
    for line, source in blocks(page):
        padded = "\n" * (line - 1) + source
        exec(compile(padded, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_no_number_without_machine() -> None:
    page = ROOT / "docs" / "benchmarks.md"
    text = page.read_text()
    assert "cores" in text, "a measured page says on what it was measured"
