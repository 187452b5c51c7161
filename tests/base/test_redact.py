"""What is remembered of commands has no secrets in it, however they are written."""

from __future__ import annotations

import pytest

from millpond.base.errors import MillpondError
from millpond.base.redact import is_sensitive, safe_args, safe_info, safe_text, safe_urls
from millpond.base.unsaid import masked


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgres://ann:p/w@host/x", "postgres://***@host/x"),
        ("s3://ann:p@ss@host/x", "s3://***@host/x"),
        ("https://host:8080/a@v3", "https://host:8080/a@v3"),
        ("s3://bucket/a@v3", "s3://bucket/a@v3"),
        ("s3://b/x?api_key=1&page=2", "s3://b/x?api_key=***&page=2"),
        ("FROM t WHERE token = 'a b' AND x = 1", "FROM t WHERE token = *** AND x = 1"),
        ('passphrase="a b" site=north', "passphrase=*** site=north"),
    ],
)  # fmt: skip
def test_texts(text: str, shown: str) -> None:
    assert safe_text(text) == shown


@pytest.mark.parametrize(
    "arg", ["password=correct horse", "db_password=ab,cd", "--token=x;y&z", "account-key=a\nb"]
)
def test_a_value_of_an_argument_is_hidden_as_a_whole(arg: str) -> None:
    name = arg.partition("=")[0]
    assert safe_args(["-v", arg, "mknod"]) == ["-v", f"{name}=***", "mknod"]
    assert safe_info({"args": [arg]}) == {"args": [f"{name}=***"]}


def test_a_location_among_arguments_keeps_what_is_no_secret() -> None:
    args = ["copy", "https://host/x?token=abc&page=2", "a=b"]
    assert safe_args(args) == ["copy", "https://host/x?token=***&page=2", "a=b"]


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        (["-v", "site=north", "list", "/a=b"], ["-v", "site=***", "list", "/a=b"]),
        (["-vsite=a=b"], ["-vsite=***"]),
        (["-v", "north"], ["-v", "***"]),
        (["-v", "a=1", "-v", "b=2"], ["-v", "a=***", "-v", "b=***"]),
    ],
)
def test_values_of_variables_are_never_remembered(args: list[str], shown: list[str]) -> None:
    assert safe_args(args) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("at https://ann:@host/x", "at https://***@host/x"),
        ("'https://token@host/x'", "'https://***@host/x'"),
        ("abfss://raw@account/x", "abfss://raw@account/x"),
        ("abfss://raw:p@account/x", "abfss://***@account/x"),
        ("https://h/x?se=1&page=2&sig=a%2Fb", "https://h/x?se=***&page=2&sig=***"),
        ("(https://h/x?X-Amz-Signature=ab), then", "(https://h/x?X-Amz-Signature=***), then"),
        ("csv:///a.csv?delimiter=;&header=no", "csv:///a.csv?delimiter=;&header=no"),
        ("'/a@v3' and s3://b/c@v3", "'/a@v3' and s3://b/c@v3"),
        ("one@two.org?sig=x", "one@two.org?sig=x"),
    ],
)
def test_urls_show_no_secrets(text: str, shown: str) -> None:
    assert safe_urls(text) == shown
    assert masked([text, {"a": text}]) == [shown, {"a": shown}]
    assert str(MillpondError(text, hint=text)) == f"{shown}\n  hint: {shown}"


@pytest.mark.parametrize(
    ("name", "expected"),
    [("db_pass", True), ("pwd", True), ("tok", True), ("auth", True), ("bearer", True),
     ("author", False), ("compass", False), ("stock", False), ("keystore", False)],
)  # fmt: skip
def test_names_of_secrets(name: str, expected: bool) -> None:
    assert is_sensitive(name) is expected
