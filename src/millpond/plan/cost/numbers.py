"""Numbers as people read them; what is not known says so."""

from __future__ import annotations


def show_rows(rows: float | None) -> str:
    """A number of rows.

    >>> show_rows(1204.0), show_rows(1.0), show_rows(0.25), show_rows(None)
    ('1,204 rows', '1 row', '0.25 rows', 'unknown rows')
    """
    if rows is None:
        return "unknown rows"
    shown = f"{rows:,.0f}" if rows >= 1 or rows == 0 else f"{rows:.2g}"
    return f"{shown} row{'' if shown == '1' else 's'}"


def show_cost(micros: float | None) -> str:
    """Microseconds of one core.

    >>> show_cost(12.0), show_cost(3_400.0), show_cost(2_500_000.0), show_cost(None)
    ('12 µs', '3.4 ms', '2.5 s', 'unknown cost')
    """
    if micros is None:
        return "unknown cost"
    if micros < 1000:
        return f"{micros:,.0f} µs"
    return f"{micros / 1000:,.1f} ms" if micros < 1e6 else f"{micros / 1e6:,.1f} s"


def show_bytes(amount: float | None) -> str:
    """An amount of bytes.

    >>> show_bytes(10.0), show_bytes(4096.0), show_bytes(None)
    ('10 bytes', '4.0 KiB', 'unknown bytes')
    """
    if amount is None:
        return "unknown bytes"
    if amount < 1024:
        return f"{amount:,.0f} bytes"
    for unit in ("KiB", "MiB"):
        amount /= 1024
        if amount < 1024:
            return f"{amount:,.1f} {unit}"
    return f"{amount / 1024:,.1f} GiB"
