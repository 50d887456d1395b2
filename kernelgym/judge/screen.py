"""Looks at the source before anything runs, to tell a candidate early what would be rejected.

The ruleset is decided on evidence at run time (which operators ran, whose kernels were launched);
the screen only answers sooner, with the line. So it speaks up only where it is sure: what it does
not see, the run does.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from kernelgym.judge.cpp_calls import computes, cpp_calls
from kernelgym.toolchain.build import Diagnostic, SourceFile
from kernelgym.toolchain.diagnostics import place_at
from kernelgym.toolchain.lexer import code_tokens, tokenize
from kernelgym.toolchain.python_source import parse
from kernelgym.toolchain.sourcemap import Place, SourceMap

__all__ = ["Finding", "screen"]

_ENTRY_FILE = "model_new.py"
_INSTRUMENTATION = ("no_sanitize", "__tsan", "kgemu")
_CUDA_SUFFIXES = (".cu", ".cuh", ".cpp", ".h", ".hpp", ".inl")
# Modules of torch.nn that hold other modules or do nothing, so that calling them computes nothing.
_HARMLESS_MODULES = frozenset(
    {
        "Module",
        "Sequential",
        "ModuleList",
        "ModuleDict",
        "ParameterList",
        "ParameterDict",
        "Parameter",
        "Identity",
    }
)


@dataclasses.dataclass(frozen=True)
class Finding:
    """Why a candidate is rejected before it runs."""

    reason: str
    message: str
    diagnostics: tuple[Diagnostic, ...] = ()


def screen(files: Sequence[SourceFile], ruleset: str, *, emulated: bool = True) -> Finding | None:
    """Screens a workspace.

    Args:
        files: Every file of the workspace.
        ruleset: `"strict"` or `"kernelbench"`.
        emulated: Whether it would run on the emulator, whose instrumentation it must leave alone.

    Returns:
        Why it is rejected, or None when nothing speaks against running it.
    """
    entry = next((file for file in files if file.path == _ENTRY_FILE), None)
    if entry is None:
        have = ", ".join(file.path for file in files) or "no files"
        return Finding("workspace.no_entry", f"expected a file {_ENTRY_FILE}, got {have}")
    if emulated:
        for file in files:
            word = next((word for word in _INSTRUMENTATION if word in file.text), None)
            if word is not None:
                text = f"{file.path}: names the emulator's instrumentation ({word!r})"
                return Finding("rule.instrumentation", text)
    if ruleset != "strict":
        return None
    source_map = SourceMap(files)
    places = [*_python_findings(entry), *_cpp_findings(files, source_map)]
    found = [
        place_at(source_map, place, "error", text, tool="screen", code="rule.torch_compute")
        for place, text in places
    ]
    if not found:
        return None
    first = found[0]
    return Finding(
        "rule.torch_compute",
        f"{first.file}:{first.line}: {first.text}; under the ruleset 'strict' this work belongs in "
        "a CUDA kernel of your own",
        tuple(found),
    )


# --- Python ----------------------------------------------------------------------------------


def _python_findings(file: SourceFile) -> Iterator[tuple[Place, str]]:
    tree = parse(file.text)
    if tree is None:
        return  # importing it will say so better
    model = next(
        (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "ModelNew"), None
    )
    if model is None:
        return
    names = _torch_names(tree)
    methods = {node.name: node for node in model.body if isinstance(node, ast.FunctionDef)}
    forward = methods.get("forward")
    if forward is None:
        return
    submodules = _compute_submodules(methods.get("__init__"), names)
    for node in ast.walk(forward):
        text = None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            text = "the operator @ multiplies matrices with torch"
        elif isinstance(node, ast.Call):
            text = _call_finding(node, names, submodules)
        if text is not None and isinstance(node, ast.expr):
            yield Place(file.path, node.lineno, node.col_offset + 1), text


def _torch_names(tree: ast.Module) -> dict[str, str]:
    """Local name → dotted torch name, from the file's top-level imports."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "torch" or alias.name.startswith("torch."):
                    names[alias.asname or "torch"] = alias.name if alias.asname else "torch"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch":
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def _dotted(node: ast.expr, names: dict[str, str]) -> str:
    """`F.relu` → `"torch.nn.functional.relu"`, or `""` when it is not torch's."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in names:
        return ""
    return ".".join([names[node.id], *reversed(parts)])


def _compute_submodules(init: ast.FunctionDef | None, names: dict[str, str]) -> dict[str, str]:
    """Attributes that `__init__` sets to an nn module that computes: attribute → class."""
    found: dict[str, str] = {}
    for node in ast.walk(init) if init is not None else ():
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        dotted = _dotted(node.value.func, names)
        cls = dotted.removeprefix("torch.nn.")
        if dotted == cls or "." in cls or cls in _HARMLESS_MODULES or not cls[:1].isupper():
            continue
        for target in node.targets:
            if (
                isinstance(target, ast.Attribute)
                and isinstance(target.value, ast.Name)
                and target.value.id == "self"
            ):
                found[target.attr] = f"nn.{cls}"
    return found


def _call_finding(node: ast.Call, names: dict[str, str], submodules: dict[str, str]) -> str | None:
    func = node.func
    if (
        isinstance(func, ast.Attribute)
        and isinstance(func.value, ast.Name)
        and func.value.id == "self"
        and func.attr in submodules
    ):
        return f"calls self.{func.attr}, an {submodules[func.attr]}, which computes with torch"
    dotted = _dotted(func, names)
    if dotted.startswith("torch.nn.functional."):
        return f"calls {dotted}, which computes with torch"
    parts = dotted.split(".")
    if len(parts) == 2 and parts[0] == "torch" and computes(parts[1]):
        return f"calls {dotted}, which computes with torch"
    return None


# --- C++ -------------------------------------------------------------------------------------


def _cpp_findings(
    files: Sequence[SourceFile], source_map: SourceMap
) -> Iterator[tuple[Place, str]]:
    for file in files:
        if file.path.endswith(_CUDA_SUFFIXES):
            texts: Iterable[str] = (file.text,)
        elif file.path.endswith(".py"):
            texts = _cpp_strings(file.text)
        else:
            continue
        for text in texts:
            for line, finding in _cpp_calls(text):
                yield source_map.locate(text, line) or Place(file.path, 0, 0), finding


def _cpp_strings(text: str) -> Iterator[str]:
    """String constants of a Python file that look like C++ with torch in it."""
    tree = parse(text)
    if tree is None:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            value = node.value
            if ("torch::" in value or "at::" in value) and ("{" in value or "#include" in value):
                yield value


def _cpp_calls(text: str) -> Iterator[tuple[int, str]]:
    """(line, what) of each call of a torch operator that computes: as a function, or of a tensor."""
    yield from cpp_calls(code_tokens(tokenize(text))[0])
