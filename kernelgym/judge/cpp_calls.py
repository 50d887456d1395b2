"""Calls of torch operators that compute, in C++: `at::relu(x)`, `x.sum(1)`, `torch::nn::…`.

Found in the tokens, before anything is compiled. A method counts only where the name before it is
declared a tensor in the same function: what is not sure is left to the run, whose recorder sees
every operator.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import torch

from kernelgym.judge.operators import operator_kind
from kernelgym.toolchain.lexer import Kind, Token

__all__ = ["computes", "cpp_calls"]

_SPACES = ("torch", "at")
# Namespaces all of whose functions compute.
_COMPUTING = ("nn", "linalg", "fft", "special")
_HARMLESS_CLASSES = ("Module", "ModuleList", "ModuleDict", "Sequential", "AnyModule")
# Methods whose operator only hands the tensor over, or tells something of it.
_METADATA = frozenset({"data", "type_as", "variable_data", "tensor_data", "result_type", "item"})


def cpp_calls(tokens: Sequence[Token]) -> Iterator[tuple[int, str]]:
    """(line, what) of each call of a torch operator that computes.

    Args:
        tokens: The code's own stream of `kernelgym.toolchain.lexer.code_tokens`.
    """
    tensors: set[str] = set()
    open_braces: list[bool] = []  # whether each is a function's, or a block's in one
    for index, token in enumerate(tokens):
        if token.text == "{":
            open_braces.append(not _is_transparent(tokens, index))
        elif token.text == "}" and open_braces:
            open_braces.pop()
            if not any(open_braces):
                tensors.clear()
        elif token.text == ";" and not any(open_braces):
            tensors.clear()  # a declaration's parameters
        elif token.kind is not Kind.IDENTIFIER:
            continue
        elif token.text in _SPACES and _text(tokens, index - 1) not in ("::", ".", "->"):
            chain, end = _chain(tokens, index)
            if chain[-1] == "Tensor":
                tensors.update(_declared(tokens, end))
            elif _text(tokens, end) in ("(", "<", "{") or chain[1:2] == ["nn"]:
                if _function(chain):
                    yield token.line, f"calls {'::'.join(chain)}, which computes with torch"
                elif [_text(tokens, index - n) for n in (1, 3)] == ["=", "auto"]:
                    tensors.update([tokens[index - 2].text] if _creates(chain) else [])
        elif token.text in tensors and _text(tokens, index + 1) == ".":
            method = _text(tokens, index + 2)
            before = _text(tokens, index - 1)
            if before in (".", "->", "::") or _text(tokens, index + 3) != "(":
                continue
            if _method_computes(method):
                yield token.line, f"calls {token.text}.{method}, which computes with torch"


@functools.cache
def computes(name: str) -> bool:
    """Whether an ATen operator of that name computes, in every overload."""
    packet = getattr(torch.ops.aten, name, None)
    if packet is None:
        return name in ("einsum", "compile", "matmul")
    return all(operator_kind(getattr(packet, o)) == "compute" for o in packet.overloads())


@functools.cache
def _method_computes(name: str) -> bool:
    packet = getattr(torch.ops.aten, name, None)
    if packet is None or name in _METADATA or not computes(name):
        return False
    schemas = [getattr(packet, overload)._schema for overload in packet.overloads()]
    return any("Tensor" in str(r.type) for schema in schemas for r in schema.returns)


def _function(chain: Sequence[str]) -> bool:
    if len(chain) > 2 and chain[1] in _COMPUTING:
        return chain[-1] not in _HARMLESS_CLASSES and chain[-1] != "functional"
    if len(chain) > 3 and chain[1] == "_ops":
        return computes(chain[2])
    if len(chain) == 2 or chain[1:2] in (["native"], ["_ops"]):
        return computes(chain[-1])
    return False


def _creates(chain: Sequence[str]) -> bool:
    """Whether the call is one of torch's that makes a tensor."""
    packet = getattr(torch.ops.aten, chain[-1], None)
    if len(chain) != 2 or packet is None:
        return False
    return all(operator_kind(getattr(packet, o)) == "create" for o in packet.overloads())


def _chain(tokens: Sequence[Token], index: int) -> tuple[list[str], int]:
    """The names of `at::cuda::f` from `at` on, and the index after them."""
    names = [tokens[index].text]
    index += 1
    while _text(tokens, index) == "::" and index + 1 < len(tokens):
        names.append(tokens[index + 1].text)
        index += 2
    return names, index


def _declared(tokens: Sequence[Token], index: int) -> Iterator[str]:
    """The name after `torch::Tensor`, if that declares a variable or a parameter."""
    while _text(tokens, index) in ("const", "&", "&&"):
        index += 1
    # A function's name is not a tensor's.
    if index < len(tokens) and tokens[index].kind is Kind.IDENTIFIER:
        yield from [tokens[index].text] if _text(tokens, index + 1) != "(" else []


def _is_transparent(tokens: Sequence[Token], index: int) -> bool:
    """Whether a brace opens a namespace, a class or an `extern "C"` block."""
    for back in range(index - 1, max(index - 12, -1), -1):
        text = tokens[back].text
        if text in ("namespace", "struct", "class", "extern"):
            return True
        if text in (";", "}", "{", ")"):
            return False
    return False


def _text(tokens: Sequence[Token], index: int) -> str:
    return tokens[index].text if 0 <= index < len(tokens) else ""
