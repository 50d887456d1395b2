"""What a candidate returns and prints, taken without running code of its own."""

from __future__ import annotations

import io
from typing import Any

import torch

__all__ = ["Tail", "is_tensor", "plain_leaves"]


def is_tensor(value: Any, *, plain: bool) -> bool:
    """Whether it is a tensor; if `plain`, no subclass, which could compute when it is looked at."""
    if plain:
        return type(value) in (torch.Tensor, torch.nn.Parameter)
    return isinstance(value, torch.Tensor)


def plain_leaves(result: Any) -> list[Any]:
    """Leaves of plain lists, tuples and dicts: flattening another class would run its code."""
    if type(result) in (list, tuple):
        return [leaf for part in result for leaf in plain_leaves(part)]
    if type(result) is dict:
        return [leaf for part in result.values() for leaf in plain_leaves(part)]
    return [result]


class Tail(io.TextIOBase):
    """Keeps the end of what is written to it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._text = ""

    def writable(self) -> bool:
        """See `io.IOBase`."""
        return True

    def write(self, text: str) -> int:
        """See `io.TextIOBase`."""
        self._text = (self._text + text)[-self._limit :]
        return len(text)

    def text(self) -> str:
        """What was kept, safe to encode."""
        return self._text.encode("utf-8", "replace").decode("utf-8")
