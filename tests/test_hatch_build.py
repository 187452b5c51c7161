"""The build hook: compiles with the compiler there is, and goes without one."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

import pytest

ROOT = Path(__file__).parent.parent
T = TypeVar("T")


class Interface(Generic[T]):
    """As much of hatchling's class as the hook uses; hatchling itself is only there in builds."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.said: list[str] = []

    @property
    def app(self) -> Interface[T]:
        return self

    def display_warning(self, message: str) -> None:
        self.said.append(message)


@pytest.fixture
def hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A hook in a tree that has a library of an earlier build."""
    interface = ModuleType("interface")
    interface.BuildHookInterface = Interface  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "hatchling.builders.hooks.plugin.interface", interface)
    spec = spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    native = tmp_path / module.NATIVE
    native.mkdir(parents=True)
    shutil.copy(ROOT / module.NATIVE / "pages.c", native)
    (native / "_pages.so").write_bytes(b"of an earlier build")
    return module.CompileNative(tmp_path)


def built(hook: Any) -> tuple[dict[str, Any], Path]:
    data: dict[str, Any] = {"artifacts": []}
    hook.initialize("standard", data)
    return data, Path(hook.root, "src/millpond/engine/arrow/native/_pages.so")


needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


@needs_compiler
def test_the_library_is_compiled_and_becomes_part_of_the_wheel(hook: Any) -> None:
    data, library = built(hook)
    assert ctypes.CDLL(str(library)).millpond_open is not None
    assert data["artifacts"] == ["src/millpond/engine/arrow/native/_pages.so"]
    assert data["tag"].startswith("py3-none-")
    assert "any" not in data["tag"]
    assert hook.said == []


@pytest.mark.parametrize("compiler", ["no-such-compiler", "false"])
def test_without_a_compiler_that_works_nothing_is_left(
    hook: Any, compiler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", compiler)
    data, library = built(hook)
    assert data == {"artifacts": []}
    assert not library.exists()
    assert compiler in hook.said[0]


@needs_compiler
def test_the_compiler_finds_nothing_to_say(tmp_path: Path) -> None:
    source = ROOT / "src/millpond/engine/arrow/native/pages.c"
    strict = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]
    made = subprocess.run(
        ["cc", "-c", *strict, "-o", str(tmp_path / "pages.o"), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.stderr == ""
    assert made.returncode == 0


@needs_compiler
@pytest.mark.slow
def test_no_page_makes_it_look_outside_of_its_memory(tmp_path: Path) -> None:
    """The tests of pages once more, with functions that watch every access."""
    source = ROOT / "src/millpond/engine/arrow/native"
    library = tmp_path / "_pages.so"
    watching = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    subprocess.run(
        ["cc", "-fPIC", "-shared", *watching, "-o", str(library), str(source / "pages.c")],
        check=True,
    )
    runtime = subprocess.run(
        ["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    tests = [f"tests/engine/arrow/pages/test_{name}.py" for name in ("chunk", "bytes")]
    code = (
        "import sys, pytest; from millpond.engine.arrow.native import library as native;"
        f"native.PATH = native.Path({str(library)!r});"
        f"sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', *{tests!r}]))"
    )
    environment = {
        "PATH": "/usr/bin:/bin",
        "LD_PRELOAD": runtime,
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "HYPOTHESIS_PROFILE": "thorough",
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-4_000:]
