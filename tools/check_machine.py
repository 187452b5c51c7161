"""Checks what a machine has to bring before anything is installed: Python, Java, best a C compiler.

Runs on a bare interpreter, so it uses the standard library alone. `make` calls it.
"""

import os
import re
import shutil
import subprocess
import sys


def python_trouble():
    """What is wrong with this Python, or None."""
    if sys.version_info < (3, 11):
        found = ".".join(map(str, sys.version_info[:3]))
        return f"Python 3.11 or newer is needed, this is {found}. Try: make PYTHON=python3.11 …"
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        return "Python's venv module is missing. On Debian and Ubuntu: apt-get install python3-venv"
    return None


def java_trouble():
    """What is wrong with this Java, or None."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    advice = (
        "Spark needs Java 17 or newer.\n"
        "  Debian, Ubuntu: apt-get install openjdk-17-jre-headless\n"
        "  macOS:          brew install openjdk@17\n"
        "  or set JAVA_HOME to an installed one."
    )
    if not java or not os.path.exists(java):
        where = f"JAVA_HOME={home} has no bin/java" if home else "no java on the PATH"
        return f"Java is missing: {where}.\n{advice}"
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    if match is None:
        return f"{java} -version said nothing that can be read.\n{advice}"
    if int(match[1]) < 17:
        return f"{java} is Java {match[1]}.\n{advice}"
    return None


def compiler_advice():
    """What is said where there is no C compiler, which is no trouble; or None."""
    if shutil.which((os.environ.get("CC", "").split() or ["cc"])[0]):
        return None
    return (
        "There is no C compiler, so Parquet files will be read by pyarrow alone: the same rows,\n"
        "up to twice as slowly. Debian, Ubuntu: apt-get install gcc libc6-dev, then make clean."
    )


def main():
    """Print every trouble and exit with 1, or say nothing but advice."""
    troubles = [trouble for trouble in (python_trouble(), java_trouble()) if trouble]
    advice = compiler_advice()
    for line in troubles + ([advice] if advice else []):
        print(line, file=sys.stderr)
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
