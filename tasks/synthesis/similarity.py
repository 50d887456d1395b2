"""How alike two programs are: by the syntax of their `Model`, whatever its names."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Mapping

from kernelgym.errors import TaskFormatError

__all__ = ["closest", "similarity", "syntax_tokens"]


def syntax_tokens(text: str) -> tuple[str, ...]:
    """The class `Model` of a program as a sequence of tokens.

    Syntax nodes in depth-first order; the names of variables, arguments and the model's own
    attributes are dropped, those of functions and modules called stay, and so do constants' types.

    Raises:
        TaskFormatError: It is not Python, or has no class `Model`.
    """
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError) as error:
        raise TaskFormatError(f"expected Python source, got: {error}") from error
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name == "Model":
            return tuple(_tokens(node))
    raise TaskFormatError("expected class Model at module level, got none")


def similarity(first: tuple[str, ...], second: tuple[str, ...]) -> float:
    """From 0 (nothing in common) to 1 (the same): twice the matching tokens over all tokens."""
    return difflib.SequenceMatcher(None, first, second, autojunk=False).ratio()


def closest(
    tokens: tuple[str, ...], known: Mapping[str, tuple[str, ...]], above: float
) -> tuple[str, float] | None:
    """The known program most similar, if more than `above`; else None.

    Args:
        tokens: Of the program asked about.
        known: Name -> tokens.
        above: Cheap upper bounds skip whatever cannot exceed it.
    """
    matcher = difflib.SequenceMatcher(None, autojunk=False)
    matcher.set_seq2(tokens)
    best: tuple[str, float] | None = None
    for name, other in known.items():
        matcher.set_seq1(other)
        if matcher.real_quick_ratio() > above and matcher.quick_ratio() > above:
            ratio = matcher.ratio()
            if ratio > above:
                best, above = (name, ratio), ratio
    return best


def _tokens(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return []  # a docstring
    token = type(node).__name__
    if isinstance(node, ast.Attribute):
        own = isinstance(node.value, ast.Name) and node.value.id == "self"
        token = "own" if own else node.attr
    elif isinstance(node, ast.Constant):
        token = type(node.value).__name__
    elif isinstance(node, ast.FunctionDef):
        token = f"def {node.name}"
    elif isinstance(node, (ast.Load, ast.Store)):
        return []
    found = [token]
    for child in ast.iter_child_nodes(node):
        found.extend(_tokens(child))
    return found
