"""Data beside the pages: JSON for programs, CSV for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from kernelgym.feedback import printable

__all__ = ["Cell", "csv_text", "json_text"]

Cell = str | float | int | bool | None

# A spreadsheet takes a cell that starts with one of these for a formula, some also behind blanks;
# the last four are full-width signs.
_FORMULA = ("=", "+", "-", "@", "\t", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """A table as CSV (RFC 4180), in which no text is a formula; what is not known is empty.

    Args:
        header: Names of the columns.
        rows: As many cells as there are columns.
    """
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(header)
    writer.writerows([_guarded(cell) for cell in row] for row in rows)
    return out.getvalue()


def json_text(document: Mapping[str, Any]) -> str:
    """A document as JSON, indented by one space; a number that is not finite is null."""
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


def _guarded(cell: Cell) -> Cell:
    if not isinstance(cell, str):
        return cell
    text = printable(cell)
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULA) else text
