"""What is remembered of commands has no secrets in it, however they are written."""

from __future__ import annotations

import pytest

from millpond.base.redact import safe_args, safe_info, safe_text


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
