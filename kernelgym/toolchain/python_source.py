"""Python's parser, one thread at a time."""

from __future__ import annotations

import ast
import threading

__all__ = ["parse"]

# Before CPython 3.12 the parser keeps its depth by interpreter, not by thread: where another thread
# parses at the same time, it may raise "AST constructor recursion depth mismatch".
_PARSER = threading.Lock()


def parse(text: str) -> ast.Module | None:
    """The tree of a module's text, or None where Python cannot make one."""
    with _PARSER:
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
