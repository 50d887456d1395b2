"""A finished composition: its structure, its split, and the task file that it is rendered as."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import math
import re
from typing import Any

from kernelgym.tasks.synthesis.draft import Input
from kernelgym.tasks.synthesis.values import BATCH, Layout

__all__ = ["HELD_OUT", "TRAIN", "Composition", "split_of"]

TRAIN, HELD_OUT = "train", "heldout"
_HELD_OUT_SHARE = 0.2
_LINE = 100


def split_of(families: tuple[str, ...]) -> str:
    """`"train"` or `"heldout"`, by nothing but which families are composed.

    The order does not matter and neither does any seed: a composition held out of one set is held
    out of every set. About a fifth of all compositions are.
    """
    digest = hashlib.sha256("+".join(sorted(families)).encode()).digest()
    return HELD_OUT if int.from_bytes(digest[:4], "big") < _HELD_OUT_SHARE * 2**32 else TRAIN


@dataclasses.dataclass(frozen=True)
class Composition:
    """Operators put one after another, with shapes at two sizes.

    Attributes:
        operators: Their names, in order.
        families: Their families, in order.
        layout: Layout of the first input.
        options: What was drawn for each operator.
        presets: Name -> extents at `full` and `small`.
        constants: Name -> value of each constant of the constructor.
        inputs: The arguments of `forward`.
        init: The constructor's statements.
        forward: What `x` becomes, one expression a statement.
    """

    operators: tuple[str, ...]
    families: tuple[str, ...]
    layout: Layout
    options: tuple[tuple[str, ...], ...]
    presets: dict[str, tuple[int, int]]
    constants: dict[str, Any]
    inputs: tuple[Input, ...]
    init: tuple[str, ...]
    forward: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its operators, in the manner of KernelBench's names."""
        return "_".join(self.operators)

    @property
    def composition(self) -> str:
        """What the split goes by: the families, sorted."""
        return "+".join(sorted(self.families))

    @property
    def split(self) -> str:
        """See `split_of`."""
        return split_of(self.families)

    @property
    def structure(self) -> str:
        """A hash that near-duplicates share: operators, options, and extents to a power of two.

        The batch is left out: it is scaled to the time wanted, so it says nothing of the program.
        """
        buckets = [
            (name, round(math.log2(full)))
            for name, (full, _) in self.presets.items()
            if name != BATCH
        ]
        parts = (self.operators, self.options, self.layout.name, buckets)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def with_batch(self, full: int) -> Composition:
        """The same with another batch at `full`."""
        presets = {**self.presets, BATCH: (full, self.presets[BATCH][1])}
        return dataclasses.replace(self, presets=presets)

    def source(self) -> str:
        """The task file, in KernelBench's form with presets."""
        arguments = _mentioned(self.init, (*self.presets, *self.constants))
        forward_arguments = ", ".join(["self", *(value.name for value in self.inputs)])
        functional = any("F." in line for line in self.forward)
        laws = {value.name: value.law for value in self.inputs if value.law is not None}
        parts = [f'"""{_sentence(self.operators)}."""\n', "import torch"]
        needs_nn = "from torch import nn"
        parts.append(
            needs_nn + ("\nfrom torch.nn import functional as F\n" if functional else "\n")
        )
        parts.append(_presets_text(self.presets))
        if laws:
            parts.append(f"LAWS = {_double_quoted(laws)}\n")
        if self.constants:
            parts.extend(f"{name} = {value!r}" for name, value in self.constants.items())
            parts.append("")
        parts.append(
            f'\nclass Model(nn.Module):\n    """{_sentence(self.operators)}, in turn."""\n'
        )
        if self.init:
            parts.extend(_wrapped(f"    def __init__({', '.join(['self', *arguments])}):"))
            parts.append("        super().__init__()")
            parts.extend(part for line in self.init for part in _wrapped(f"        {line}"))
            parts.append("")
        parts.append(f"    def forward({forward_arguments}):")
        steps = [f"x = {line}" for line in self.forward[:-1]] + [f"return {self.forward[-1]}"]
        parts.extend(part for line in steps for part in _wrapped(f"        {line}"))
        parts.append("\n")
        parts.append("def get_inputs():")
        made = ", ".join(value.expression for value in self.inputs)
        parts.extend(_wrapped(f"    return [{made}]"))
        parts.append("\n\ndef get_init_inputs():")
        parts.extend(_wrapped(f"    return [{', '.join(arguments)}]"))
        parts.append("")
        return "\n".join(parts)


def _mentioned(lines: tuple[str, ...], names: tuple[str, ...]) -> list[str]:
    """Those of the names that occur in the lines, in order of appearance."""
    words = re.findall(r"[A-Za-z_]\w*(?!\w*=[^=])", " ".join(lines))
    return list(dict.fromkeys(word for word in words if word in names))


def _sentence(operators: tuple[str, ...]) -> str:
    return ", ".join(operators)


def _presets_text(presets: dict[str, tuple[int, int]]) -> str:
    lines = ["PRESETS = {"]
    for position, size in enumerate(("full", "small")):
        values = ", ".join(f'"{name}": {sizes[position]}' for name, sizes in presets.items())
        line = f'    "{size}": {{{values}}},'
        if len(line) <= _LINE:
            lines.append(line)
            continue
        lines.append(f'    "{size}": {{')
        lines.extend(f'        "{name}": {sizes[position]},' for name, sizes in presets.items())
        lines.append("    },")
    return "\n".join([*lines, "}\n"])


def _wrapped(line: str) -> list[str]:
    """A statement of one line, or of more where it is too long: one bracket opened up.

    What is opened is the last pair of brackets that is not inside another, as the formatter does.
    """
    if len(line) <= _LINE:
        return [line]
    depth = 0
    opened = closed = 0
    commas: list[int] = []
    for position, character in enumerate(line):
        if character in "([{":
            if depth == 0:
                opened, commas = position, []
            depth += 1
        elif character in ")]}":
            depth -= 1
            if depth == 0:
                closed = position
        elif character == "," and depth == 1:
            commas.append(position)
    indent = line[: len(line) - len(line.lstrip())]
    inner = line[opened + 1 : closed]
    if line[opened] == "(" and len(indent) + 4 + len(inner) <= _LINE:
        body = [f"{indent}    {inner}"]
    else:
        bounds = [opened, *commas, closed]
        body = [
            f"{indent}    {line[start + 1 : end].strip()},"
            for start, end in itertools.pairwise(bounds)
        ]
    return [line[: opened + 1], *body, indent + line[closed:]]


def _double_quoted(value: Any) -> str:
    """A literal as the project's formatter writes it; the texts in it hold no quotes."""
    return repr(value).replace("'", '"')
