"""Spark's exceptions as ours: `translate()` turns any of them into one `MillpondError`.

Spark names its errors by a condition such as `DIVIDE_BY_ZERO`. That decides: the data was at fault
(`EvaluationError`), a file was (`SourceError`), the query was (`SqlError`), or Spark itself
(`EngineError`). A message is what a person can use, never a JVM's stack.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from millpond.base.errors import (
    EngineError,
    EvaluationError,
    MillpondError,
    SourceError,
    SqlError,
    StaleChecksumError,
)
from millpond.base.unsaid import cause_of
from millpond.engine.spark.evaluation import evaluation_error
from millpond.engine.spark.faults import FAULT, PATH
from millpond.engine.spark.verify import damaged

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from millpond.plan.node import Plan

_ENGINE = "spark"

_CHECKSUM = re.compile(r"ChecksumException: Checksum error: (.+?) at \d+ exp: ")
# Conditions (the part before the first dot) that a value in the data raises.
_EVALUATION = frozenset(
    {
        "ARITHMETIC_OVERFLOW",
        "BINARY_ARITHMETIC_OVERFLOW",
        "CANNOT_PARSE_DECIMAL",
        "CANNOT_PARSE_TIMESTAMP",
        "CAST_INVALID_INPUT",
        "CAST_OVERFLOW",
        "COLLECTION_SIZE_LIMIT_EXCEEDED",
        "CONVERSION_INVALID_INPUT",
        "DATETIME_FIELD_OUT_OF_BOUNDS",
        "DATETIME_OVERFLOW",
        "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION",
        "DIVIDE_BY_ZERO",
        "DUPLICATED_MAP_KEY",
        "INTERVAL_ARITHMETIC_OVERFLOW",
        "INTERVAL_DIVIDED_BY_ZERO",
        "INVALID_ARRAY_INDEX",
        "INVALID_ARRAY_INDEX_IN_ELEMENT_AT",
        "INVALID_BITMAP_POSITION",
        "INVALID_FRACTION_OF_SECOND",
        "INVALID_INDEX_OF_ZERO",
        "INVALID_PARAMETER_VALUE",
        "INVALID_URL",
        "MALFORMED_RECORD_IN_PARSING",
        "MAP_KEY_DOES_NOT_EXIST",
        "NULL_MAP_KEY",
        "NUMERIC_OUT_OF_SUPPORTED_RANGE",
        "NUMERIC_VALUE_OUT_OF_RANGE",
        "OVERFLOW",
        "REMAINDER_BY_ZERO",
        "SCALAR_SUBQUERY_TOO_MANY_ROWS",
        "USER_RAISED_EXCEPTION",
        "VALUE_OUT_OF_RANGE",
    }
)
_SOURCE = frozenset({"PATH_NOT_FOUND", "FAILED_READ_FILE", "CANNOT_READ_FILE_FOOTER"})
_SOURCE_CLASSES = ("FileNotFoundException", "NoSuchFileException", "AccessDeniedException")
# What Spark says of a Parquet file whose schema is empty.
_NO_COLUMNS = "Index 0 out of bounds for length 0"
# What Parquet's reader says of a page.
_PAGE_CHECKSUM = "CRC checksum verification failed"
_ANALYSIS = ("AnalysisException", "ParseException")

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]\s*")
_POSITION = re.compile(r"\(line (\d+), pos(?:ition)? (\d+)\)")
# The last line of a Python traceback: the first that is not indented.
_PYTHON = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)*(\S.*)")
# As `batches.keep` says it, here or in a worker.
_ANSWERS = re.compile(r"the row filter .* gave \d+ answers, \d+ of them null, for \d+ rows")
_CLASS = re.compile(r"^(?:Caused by: )?(?:[\w$]+\.)+([\w$]*(?:Exception|Error))\b:?\s*")
_CLASS_INSIDE = re.compile(r"\s(?:[a-z][\w$]*\.)+[\w$]*(?:Exception|Error):\s")
_PATH = re.compile(
    r"(?:File |[Pp]ath(?: does not exist)?:? )'?((?:\w+:)?/[^\s,;']*)'?|(\w+:/[^\s,;']+)"
)
# What Spark adds for machines, and advice that does not hold here: ANSI mode stays on.
_NOISE = re.compile(
    r"\s*SQLSTATE: \w{5}(?:\s*\(line \d+, pos \d+\)|;?\s*line \d+ pos \d+)?;?"
    r"|\s*If necessary,? set \S+ to \S+ to bypass this error(?:, and return NULL instead)?\.?"
    r"|\[MALFORMED_[A-Z_.]+\]\s*|\s*Parse Mode: FAILFAST\. To process malformed records as null "
    r"result, try setting the option 'mode' as 'PERMISSIVE'\."
)


def translate(error: BaseException, plan: Plan | None = None) -> MillpondError:
    """The Millpond error that says what this one means; one of ours comes back as it is.

    The plan that was run helps to say which of its expressions failed.
    """
    if isinstance(error, EvaluationError) and error.__cause__ is not None:
        error = error.__cause__  # told without the plan, where that was not known
    if isinstance(error, MillpondError):
        return error
    texts = [_text(e) for e in _chain(error)]
    for text in texts:
        if found := FAULT.search(text):
            return _source_fault(found)
        if found := _ANSWERS.search(text):
            return EvaluationError(found[0], engine=_ENGINE)
    condition = _condition(error, texts)
    family = condition.partition(".")[0]
    message = _message(error, texts, condition)
    if family in _EVALUATION:
        said = "\n".join(texts)
        given = _parameters(error)
        return evaluation_error(condition, given, said=message, text=said, plan=plan)
    for text in texts:
        if found := _CHECKSUM.search(text):
            return StaleChecksumError(engine=_ENGINE, path=_plain_path(found[1]))
    if family in _SOURCE and _NO_COLUMNS in message:
        path = _source_path(error, texts)
        hint = "leave the file out, or write it with a column"
        return SourceError(f"{path} holds no columns", engine=_ENGINE, path=path, hint=hint)
    if family in _SOURCE or any(name in text for text in texts for name in _SOURCE_CLASSES):
        path, missing = _source_path(error, texts), _is_missing(condition, texts)
        if any(_PAGE_CHECKSUM in text for text in texts):
            return damaged(path, f"{path} is damaged: the checksum of a page does not fit it")
        hint = _GONE if missing else _UNREADABLE
        return SourceError(message, engine=_ENGINE, path=path, missing=missing, hint=hint)
    if _is_analysis(error):
        line, column = _position(error, texts)
        where = f" (line {line}, column {column})" if line is not None else ""
        if family == "TABLE_OR_VIEW_NOT_FOUND":
            # Spark's own advice is about catalogs, and dropping views.
            message = f"there is no table {_parameters(error).get('relationName', '')}".rstrip()
            hint = "a query reads its inputs by their names; that of pond cat --sql is source"
            return SqlError(f"{message}{where}", line=line, column=column, hint=hint)
        hint = "check names, types and functions; docs/trust.md says what a query may call"
        return SqlError(f"{message}{where}", line=line, column=column, hint=hint)
    if _is_memory(texts):
        hint = "give Spark more with spark.driver_memory, or ask for fewer or narrower rows"
        return EngineError(f"Spark ran out of memory: {message}", engine=_ENGINE, hint=hint)
    return EngineError(message, engine=_ENGINE)


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """What fails in the block is an error of ours."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - it is raised, and may not be named as the cause
        raise translate(error) from cause_of(error)


def _source_fault(found: re.Match[str]) -> SourceError:
    # Spark quotes what it tells of a row's file, in all its forms.
    path = unquote(_plain_path(found["path"]))
    message = found["message"].replace(PATH, path, 1)
    return SourceError(message, engine=_ENGINE, path=path, hint=found["hint"])


def first_line(error: BaseException) -> str:
    """The first line of an error that a person can use: no class names, no stack.

    >>> first_line(ValueError("java.lang.IllegalStateException: the pond is dry\\n\\tat a.b.C"))
    'the pond is dry'
    """
    texts = [_text(e) for e in _chain(error)]
    return _message(error, texts, _condition(error, texts))


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__


def _text(error: BaseException) -> str:
    """All that the error says, with the JVM's own text where there is one."""
    java = getattr(error, "java_exception", None)
    if java is not None:
        try:
            return _java_text(java)
        except Exception:  # noqa: BLE001 - the JVM may be gone; what Python knows is then enough
            return str(getattr(error, "errmsg", "") or error)
    return str(error)


def _java_text(java: Any) -> str:
    """The messages of a Java exception and its causes, without stacks."""
    parts: list[str] = []
    while java is not None and len(parts) < 12:
        parts.append(str(java.toString()))
        java = java.getCause()
    return "\n".join(parts)


def _condition(error: BaseException, texts: list[str]) -> str:
    # Some errors ask a JVM that may be gone; the text has the condition too.
    with contextlib.suppress(Exception):
        if condition := error.getCondition():  # type: ignore[attr-defined]
            return str(condition)
    # A failed task wraps the condition that matters in the text of the job's failure.
    for text in texts:
        found = [c for c in _CONDITION.findall(text) if "_" in c or "." in c or c.isupper()]
        known = [c for c in found if c.partition(".")[0] in _EVALUATION | _SOURCE]
        if known or found:
            return str((known or found)[0])
    return ""


def _message(error: BaseException, texts: list[str], condition: str) -> str:
    """The paragraph that carries the condition, else the first line that is not a stack's."""
    for text in texts:
        if found := _PYTHON.findall(text):
            return f"Python code failed: {found[-1].strip()}"
        if condition and (at := text.find(f"[{condition}]")) >= 0:
            return _clean(text[at + len(condition) + 2 :])
    for text in texts:
        for line in text.splitlines():
            if line.strip() and not line.lstrip().startswith(("at ", "...", "Traceback", "File ")):
                return _clean(line)
    return type(error).__name__


def _clean(text: str) -> str:
    paragraph = re.split(
        r"\n\s*\n|\n\tat |\n== |\nJVM stacktrace|\n\s*'|;\n", text.strip(), maxsplit=1
    )[0]
    line = _NOISE.sub("", " ".join(paragraph.split()))
    while (found := _CLASS.match(line)) and found.end() < len(line):
        line = line[found.end() :]
    line = _CONDITION.sub("", line, count=1) if line.startswith("[") else line
    return _CLASS_INSIDE.sub(" ", line).strip()


def _is_analysis(error: BaseException) -> bool:
    names = {cls.__name__ for e in _chain(error) for cls in type(e).__mro__}
    return not names.isdisjoint(_ANALYSIS)


def _is_memory(texts: list[str]) -> bool:
    return any("OutOfMemoryError" in t or "SparkOutOfMemoryError" in t for t in texts)


def _position(error: BaseException, texts: list[str]) -> tuple[int | None, int | None]:
    """Line and column, both from 1, where Spark says where in the query it stumbled."""
    for text in texts:
        if found := _POSITION.search(text):
            return int(found[1]), int(found[2]) + 1
    return _context_position(error)


def _context_position(error: BaseException) -> tuple[int | None, int | None]:
    """Spark's query context has the query's text cut at the fragment, and its offset."""
    try:
        contexts = error.getQueryContext()  # type: ignore[attr-defined]
        for context in contexts:
            if context.contextType().name != "SQL":
                continue
            if found := re.search(r"\(line (\d+), position (\d+)\)", context.summary()):
                return int(found[1]), int(found[2])
    except Exception:  # noqa: BLE001 - no context, or a JVM that is gone: there is no position then
        return None, None
    return None, None


def _parameters(error: BaseException) -> Mapping[str, str]:
    try:
        return error.getMessageParameters() or {}  # type: ignore[attr-defined]
    except Exception:  # noqa: BLE001 - not an error with parameters, or a JVM that is gone
        return {}


def _source_path(error: BaseException, texts: list[str]) -> str:
    if path := _parameters(error).get("path"):
        return _plain_path(str(path))
    for text in texts:
        if found := _PATH.search(text):
            return _plain_path(str(found[1] or found[2]).rstrip("."))
    return ""


def _plain_path(path: str) -> str:
    """A local file's path as people write it.

    >>> _plain_path("file:///pond/a%20b.parquet"), _plain_path("s3://pond/a.parquet")
    ('/pond/a b.parquet', 's3://pond/a.parquet')
    """
    if not path.startswith("file:"):
        return path
    # Only the form with three slashes is quoted.
    quoted = path.startswith("file://")
    plain = "/" + path.removeprefix("file:").lstrip("/")
    return unquote(plain) if quoted else plain


_GONE = "the file is gone or was never there: check the path, or read a current version"
_UNREADABLE = "the file can't be read: check that it is complete and of the right format"


def _is_missing(condition: str, texts: list[str]) -> bool:
    if "NOT_FOUND" in condition or "NOT_EXIST" in condition:
        return True
    return any("FileNotFound" in text or "NoSuchFile" in text for text in texts)
