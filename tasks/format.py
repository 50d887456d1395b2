"""The form of a task file: KernelBench's, with its sizes and a few facts beside it as data.

A task file defines `Model`, `get_inputs` and `get_init_inputs`. It may also hold, as literals at
module level:

* `PRESETS`: size -> {name: value}. The names are bound when the task is made for a size, as if the
  file said `name = value` in the same place; a file without it has one size.
* `LAWS`, `WEIGHTS`, `OUTPUT`, `SLICE`, `MODE`, `UNSCORABLE`: what the judge has to know where its default
  is not right; see `JUDGE_NAMES`. An agent is not shown them.

Reading a file parses it and runs nothing.
"""

from __future__ import annotations

import ast
import dataclasses
from typing import Any

from kernelgym.errors import TaskFormatError

__all__ = [
    "JUDGE_NAMES",
    "MODE_RULES",
    "OUTPUT_RULES",
    "SIZES",
    "WEIGHT_RULES",
    "TaskFile",
    "parse",
]

SIZES = ("small", "medium", "full")

# What the judge reads beside the program.
JUDGE_NAMES = ("LAWS", "WEIGHTS", "OUTPUT", "SLICE", "MODE", "UNSCORABLE")

# `constructed`: the values that the constructor draws; `perturbed`: the audited protocol moves them,
# because with them the output says little. Instead of `"perturbed"` a file may give laws for some
# entries of the state, {state key: law}; the others are perturbed.
WEIGHT_RULES = ("constructed", "perturbed")

# Which mode the audited protocol runs in: `train`, as KernelBench does, or `eval` where rounding
# decides the result of training mode.
MODE_RULES = ("train", "eval")

# `numeric`: within the error budget; `exact`: bit for bit (integers, booleans); `near_tie_index`:
# an index is right when the value there is within the budget of the best; `stochastic`: the forward
# pass draws random numbers, so both sides are run from one generator state.
OUTPUT_RULES = ("numeric", "exact", "near_tie_index", "stochastic")


@dataclasses.dataclass(frozen=True)
class TaskFile:
    """A task file, taken apart.

    Attributes:
        filename: Where the text comes from, for messages and tracebacks.
        text: The file as it is.
        tree: Its syntax tree.
        presets: Size -> {name: value}; empty for a file that has one size.
        forward_args: Names of the arguments of `Model.forward` without `self`.
        judge: The judge's statements that the file holds: name -> value.
    """

    filename: str
    text: str
    tree: ast.Module
    presets: dict[str, dict[str, Any]]
    forward_args: tuple[str, ...]
    judge: dict[str, Any]

    def source(self, size: str) -> str:
        """The program for one size, as a file of its own in KernelBench's form."""
        replacements = {}
        for node in self.tree.body:
            name = _assigned_name(node)
            if name == "PRESETS":
                replacements[node] = "".join(
                    f"{key} = {value!r}\n" for key, value in self.values(size).items()
                )
            elif name in JUDGE_NAMES:
                replacements[node] = ""
        return _replace_statements(self.text, replacements)

    @property
    def weights_rule(self) -> str:
        """One of `WEIGHT_RULES`."""
        statement = self.judge.get("WEIGHTS", "constructed")
        return "perturbed" if isinstance(statement, dict) else str(statement)

    def code(self, size: str) -> Any:
        """The program for one size, compiled; line numbers are those of the file itself."""
        body: list[ast.stmt] = []
        for node in self.tree.body:
            name = _assigned_name(node)
            if name == "PRESETS":
                text = "\n".join(f"{key} = {value!r}" for key, value in self.values(size).items())
                for statement in ast.parse(text).body:
                    for part in ast.walk(statement):
                        ast.copy_location(part, node)
                    body.append(statement)
            elif name not in JUDGE_NAMES:
                body.append(node)
        return compile(ast.Module(body, type_ignores=[]), self.filename, "exec")

    def values(self, size: str) -> dict[str, Any]:
        """The names that a size's preset binds; empty for a file that has one size."""
        if not self.presets:
            return {}
        return self.presets[size]


def parse(text: str, filename: str) -> TaskFile:
    """Takes a task file apart without running it.

    Args:
        text: The file's text.
        filename: Its path, for messages.

    Raises:
        TaskFormatError: It is not Python, lacks one of the three definitions, or holds a malformed
            statement for the judge.
    """
    try:
        tree = ast.parse(text, filename)
    except (SyntaxError, ValueError) as error:
        raise TaskFormatError(f"{filename}: expected Python source, got: {error}") from error
    definitions = {
        node.name: node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))
    }
    model = definitions.get("Model")
    missing = [
        what
        for what, found in (
            ("class Model", isinstance(model, ast.ClassDef)),
            ("def get_inputs", isinstance(definitions.get("get_inputs"), ast.FunctionDef)),
            (
                "def get_init_inputs",
                isinstance(definitions.get("get_init_inputs"), ast.FunctionDef),
            ),
        )
        if not found
    ]
    if missing:
        raise TaskFormatError(
            f"{filename}: expected Model, get_inputs and get_init_inputs at module level, "
            f"got no {', no '.join(missing)}"
        )
    assert isinstance(model, ast.ClassDef)
    literals = {}
    for node in tree.body:
        name = _assigned_name(node)
        if name == "PRESETS" or name in JUDGE_NAMES:
            literals[name] = _literal(node, name, filename)
    presets = literals.pop("PRESETS", {})
    _check_presets(presets, filename)
    forward_args = _forward_args(model, filename)
    _check_judge_statements(literals, forward_args, filename)
    return TaskFile(filename, text, tree, presets, forward_args, literals)


def _assigned_name(node: ast.stmt) -> str:
    """The name that a plain assignment `name = …` binds, or `""`."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        return target.id if isinstance(target, ast.Name) else ""
    return ""


def _literal(node: ast.stmt, name: str, filename: str) -> Any:
    assert isinstance(node, ast.Assign)
    try:
        return ast.literal_eval(node.value)
    except ValueError as error:
        raise TaskFormatError(
            f"{filename}:{node.lineno}: {name}: expected a literal, got an expression"
        ) from error


def _forward_args(model: ast.ClassDef, filename: str) -> tuple[str, ...]:
    for node in model.body:
        if isinstance(node, ast.FunctionDef) and node.name == "forward":
            return tuple(arg.arg for arg in (*node.args.posonlyargs, *node.args.args)[1:])
    raise TaskFormatError(f"{filename}: Model: expected a method forward, got none")


def _check_presets(presets: Any, filename: str) -> None:
    if presets == {}:
        return
    if not isinstance(presets, dict) or not all(
        isinstance(values, dict)
        and all(isinstance(key, str) and key.isidentifier() for key in values)
        for values in presets.values()
    ):
        raise TaskFormatError(f"{filename}: PRESETS: expected {{size: {{name: value}}}}")
    unknown = set(presets) - set(SIZES)
    if unknown or "full" not in presets or "small" not in presets:
        raise TaskFormatError(
            f"{filename}: PRESETS: expected full, small and perhaps medium, got {', '.join(presets)}"
        )
    names = list(presets["full"])
    for size, values in presets.items():
        if list(values) != names:
            raise TaskFormatError(
                f"{filename}: PRESETS: {size}: expected the names {', '.join(names)} in this order, "
                f"got {', '.join(values)}"
            )


def _check_judge_statements(
    statements: dict[str, Any], forward_args: tuple[str, ...], filename: str
) -> None:
    laws = statements.get("LAWS", {})
    if not isinstance(laws, dict):
        raise TaskFormatError(f"{filename}: LAWS: expected {{argument: law}}, got {laws!r}")
    for name in laws:
        if name not in forward_args:
            raise TaskFormatError(
                f"{filename}: LAWS: expected arguments of forward ({', '.join(forward_args)}), "
                f"got {name!r}"
            )
    rules = (("WEIGHTS", WEIGHT_RULES), ("OUTPUT", OUTPUT_RULES), ("MODE", MODE_RULES))
    for name, accepted in rules:
        if name == "WEIGHTS" and isinstance(statements.get(name), dict):
            continue
        if statements.get(name, accepted[0]) not in accepted:
            raise TaskFormatError(
                f"{filename}: {name}: expected one of {', '.join(accepted)}, "
                f"got {statements[name]!r}"
            )
    _check_slice(statements.get("SLICE"), forward_args, filename)
    if not isinstance(statements.get("UNSCORABLE", ""), str):
        raise TaskFormatError(f"{filename}: UNSCORABLE: expected the proof as a text")


def _check_slice(statement: Any, forward_args: tuple[str, ...], filename: str) -> None:
    cuts = statement if isinstance(statement, dict) else {"output": statement or 0}
    accepted = {*forward_args, "output"}
    if (
        not accepted.issuperset(cuts)
        or "output" not in cuts
        or not all(isinstance(dim, int) and dim >= 0 for dim in cuts.values())
    ):
        raise TaskFormatError(
            f"{filename}: SLICE: expected None, a dimension, or {{argument: dimension}} with "
            f"'output' among the arguments, got {statement!r}"
        )


def _replace_statements(text: str, replacements: dict[ast.stmt, str]) -> str:
    """Replaces whole statements by other lines; one removed takes its comment lines with it."""
    lines = text.splitlines(keepends=True)
    for node in sorted(replacements, key=lambda node: node.lineno, reverse=True):
        start, end = node.lineno - 1, node.end_lineno or node.lineno
        if not replacements[node]:
            while start > 0 and lines[start - 1].startswith("#"):
                start -= 1
            while start > 0 and not lines[start - 1].strip():
                start -= 1
        lines[start:end] = replacements[node].splitlines(keepends=True)
    return "".join(lines)
