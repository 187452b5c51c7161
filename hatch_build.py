"""Compiles the C functions of the Arrow engine while the package is built or installed.

Without a C compiler the package is complete all the same: pyarrow does what they would do.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NATIVE = Path("src", "millpond", "engine", "arrow", "native")
FLAGS = ("-O3", "-std=c11", "-fPIC", "-shared", "-fvisibility=hidden")


class CompileNative(BuildHookInterface[Any]):
    """One C file becomes one shared library beside it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Compile it, and say so where that can't be done."""
        source, target = (Path(self.root, NATIVE, name) for name in ("pages.c", "_pages.so"))
        target.unlink(missing_ok=True)
        compiler = shlex.split(os.environ.get("CC", "")) or ["cc"]
        if shutil.which(compiler[0]) is None:
            self.app.display_warning(
                f"no C compiler ({compiler[0]}): Parquet is read by pyarrow alone"
            )
            return
        made = subprocess.run(
            [*compiler, *FLAGS, "-o", str(target), str(source)],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            self.app.display_warning(f"{compiler[0]} could not compile {source}:\n{made.stderr}")
            target.unlink(missing_ok=True)
            return
        build_data["artifacts"].append(str(NATIVE / target.name))
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
