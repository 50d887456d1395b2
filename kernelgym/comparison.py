"""One's own reference and kernel, from files, as a task and a workspace for the judge.

The reference is a file in KernelBench's form (`Model`, `get_inputs`, `get_init_inputs`), or one with
a plain function; the kernel a file with `ModelNew`, one with a function of the same arguments, or a
`.cu` file with a C++ function that takes and returns tensors. All of it is the caller's own, trusted
code: reading a file parses it, and judging runs it.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernelgym.errors import TaskFormatError, UsageError
from kernelgym.tasks import Task
from kernelgym.tasks.format import parse

__all__ = ["Shape", "kernel_files", "parse_shapes", "reference_task"]

_SHAPE = re.compile(
    r"(?:(?P<name>[A-Za-z_]\w*)=)?(?P<sizes>\d+(?:x\d+)*)(?::(?P<dtype>\w+))?", re.ASCII
)
_DTYPES = ("float32", "float16", "bfloat16", "float64", "int32", "int64")
_PARTS = ("Model", "get_inputs", "get_init_inputs")
# `torch::Tensor f(...) {`, in a .cu file; what starts a line with a keyword is no such function.
_ENTRY = re.compile(
    r"^[ \t]*(?:inline\s+|static\s+)?(?P<result>(?:torch|at)::Tensor|std::vector<(?:torch|at)::Tensor>)"
    r"\s+(?P<name>[A-Za-z_]\w*)\s*\((?P<arguments>[^(){}]*)\)\s*\{",
    re.MULTILINE,
)
_TENSOR = re.compile(r"\b(?:torch|at)::Tensor\b")


@dataclasses.dataclass(frozen=True)
class Shape:
    """The shape of one input.

    Attributes:
        name: The argument's name; `""` where it is meant by its place.
        sizes: Its extents.
        dtype: Its type, as torch names it.
    """

    name: str
    sizes: tuple[int, ...]
    dtype: str = "float32"


def parse_shapes(text: str) -> tuple[Shape, ...]:
    """Reads `"1024x1024,1024"` or `"x=64x512:float16,y=512"`.

    Args:
        text: Shapes in the order of the arguments, or by their names; a type may follow a colon.

    Raises:
        UsageError: It is not of that form.
    """
    shapes = []
    for part in text.split(","):
        match = _SHAPE.fullmatch(part.strip())
        dtype = (match["dtype"] or "float32") if match is not None else ""
        if match is None or dtype not in _DTYPES:
            raise UsageError(
                "--shapes: expected shapes such as 1024x1024,1024 or x=64x512:float16 (types: "
                f"{', '.join(_DTYPES)}), got {part.strip()!r}"
            )
        sizes = tuple(int(size) for size in match["sizes"].split("x"))
        shapes.append(Shape(match["name"] or "", sizes, dtype))
    return tuple(shapes)


def reference_task(path: Path, shapes: Sequence[Shape] = ()) -> Task:
    """The task that a reference file states.

    Args:
        path: A file in KernelBench's form, or with a plain function of tensors; of several, the one
            called `reference`.
        shapes: Shapes of the inputs: needed for a plain function, and in place of `get_inputs` for
            the other form. Values are drawn from N(0, 1), whole numbers from 0 to 9.

    Raises:
        UsageError: The file cannot be read, is neither, or the shapes do not fit its arguments.
    """
    text = _read(path)
    names = _definitions(text, path)
    if "Model" in names:
        arguments = parse(_with_parts(text, names, shapes, path), str(path)).forward_args
    else:
        function = _only_function(names, path)
        arguments = _arguments(function)
        text += (
            "\n\nimport torch as _torch\n\n\nclass Model(_torch.nn.Module):\n"
            f"    def forward(self, {', '.join(arguments)}):\n"
            f"        return {function.name}({', '.join(arguments)})\n"
        )
        if not shapes and "get_inputs" not in names:
            raise UsageError(
                f"--shapes: {path} has the function {function.name}({', '.join(arguments)}) and no "
                f"get_inputs: expected shapes such as --shapes {','.join(f'{a}=1024x1024' for a in arguments)}"
            )
    if shapes:
        text += _drawing(_in_order(shapes, arguments))
    if "get_init_inputs" not in names:
        text += "\n\ndef get_init_inputs():\n    return []\n"
    parse(text, str(path))
    return Task(id=path.stem, level=0, number=0, name=path.stem, path=str(path), text=text)


def kernel_files(path: Path, task: Task, function: str = "") -> Mapping[str, str]:
    """The workspace that a kernel file makes.

    Args:
        path: A Python file with `ModelNew` or with a function, or a `.cu` file with a C++ function.
        task: The reference, whose arguments and parameters it takes.
        function: Which function, where the file has several.

    Returns:
        Text by path in the workspace.

    Raises:
        UsageError: The file cannot be read, or has nothing to call; the message says what signature
            is expected.
    """
    text = _read(path)
    if path.suffix == ".cu":
        return {
            path.name: text,
            "reference_model.py": task.source(),
            "model_new.py": _wrapper(path, text, task, function),
        }
    if path.suffix != ".py":
        raise UsageError(f"KERNEL: expected a .py or a .cu file, got {path}")
    names = _definitions(text, path)
    beside = {
        other.name: _read(other)
        for suffix in (".cu", ".cuh", ".h", ".cpp")
        for other in sorted(path.parent.glob(f"*{suffix}"))
        if other.name in text
    }
    if "ModelNew" not in names:
        chosen = names.get(function) if function else _only_function(names, path)
        if not isinstance(chosen, ast.FunctionDef):
            raise UsageError(f"--function: expected a function of {path}, got {function!r}")
        text += (
            "\n\nimport torch as _torch\nfrom reference_model import Model as _Model\n\n\n"
            "class ModelNew(_Model):\n    def forward(self, *inputs):\n"
            f"        return {chosen.name}(*inputs)\n"
        )
        beside["reference_model.py"] = task.source()
    return {**beside, "model_new.py": text}


# --- references ---------------------------------------------------------------------------------


def _with_parts(
    text: str, names: Mapping[str, ast.stmt], shapes: Sequence[Shape], path: Path
) -> str:
    """The text with what may be left out of it, so that it can be taken apart."""
    if "get_inputs" not in names and not shapes:
        raise UsageError(f"--shapes: {path} has no get_inputs: expected the inputs' shapes")
    return text + "".join(
        f"\n\ndef {part}():\n    return []\n" for part in _PARTS[1:] if part not in names
    )


def _drawing(shapes: Sequence[Shape]) -> str:
    lines = ["", "", "def get_inputs():", "    import torch", "", "    return ["]
    for shape in shapes:
        sizes = ", ".join(map(str, shape.sizes))
        if shape.dtype.startswith("int"):
            call = f"torch.randint(0, 10, ({sizes},), dtype=torch.{shape.dtype})"
        elif shape.dtype == "float32":
            call = f"torch.randn({sizes})"
        else:
            call = f"torch.randn({sizes}, dtype=torch.{shape.dtype})"
        lines.append(f"        {call},")
    return "\n".join([*lines, "    ]", ""])


def _in_order(shapes: Sequence[Shape], arguments: Sequence[str]) -> list[Shape]:
    named = {shape.name: shape for shape in shapes if shape.name}
    unknown = sorted(set(named) - set(arguments))
    placed = [shape for shape in shapes if not shape.name]
    if unknown or (named and placed) or len(shapes) > len(arguments):
        raise UsageError(
            f"--shapes: expected shapes of the arguments ({', '.join(arguments)}), in their order or "
            f"all by name, got {', '.join(shape.name or 'one without a name' for shape in shapes)}"
        )
    if not named:
        return placed
    first = [name for name in arguments if name in named]
    if list(arguments[: len(first)]) != first:
        raise UsageError(f"--shapes: expected shapes of the first arguments of {list(arguments)}")
    return [named[name] for name in first]


def _definitions(text: str, path: Path) -> dict[str, ast.stmt]:
    try:
        tree = ast.parse(text, str(path))
    except (SyntaxError, ValueError) as error:
        raise TaskFormatError(f"{path}: expected Python source, got: {error}") from error
    return {n.name: n for n in tree.body if isinstance(n, (ast.ClassDef, ast.FunctionDef))}


def _only_function(names: Mapping[str, ast.stmt], path: Path) -> ast.FunctionDef:
    found = {
        name: node
        for name, node in names.items()
        if isinstance(node, ast.FunctionDef) and not name.startswith(("_", "get_"))
        if not node.decorator_list
    }
    chosen = found.get("reference") or (next(iter(found.values())) if len(found) == 1 else None)
    if chosen is None:
        raise UsageError(
            f"{path}: expected a class Model (KernelBench's form) or ModelNew, or one function of "
            f"tensors, got {', '.join(found) or 'none of them'}"
        )
    return chosen


def _arguments(function: ast.FunctionDef) -> tuple[str, ...]:
    return tuple(arg.arg for arg in (*function.args.posonlyargs, *function.args.args))


# --- kernels ------------------------------------------------------------------------------------


def _wrapper(path: Path, text: str, task: Task, function: str) -> str:
    """`model_new.py` around a C++ function of a `.cu` file."""
    entries = [m for m in _ENTRY.finditer(text) if function in ("", m["name"])]
    state = tuple(task.module().Model(*task.module().get_init_inputs()).state_dict())
    inputs = task.file.forward_args
    if not entries:
        raise UsageError(f"{path}: {_expected(inputs, state)}, got {_got(text, function)}")
    entry = entries[-1]
    taken = len(_TENSOR.findall(entry["arguments"]))
    given = len([part for part in entry["arguments"].split(",") if part.strip()])
    rest = given - len(inputs)
    if rest not in {0, len(state)} or (rest and taken < rest):
        raise UsageError(
            f"{path}: {_expected(inputs, state)}, got {entry['name']} with {given} arguments"
        )
    passed = "*inputs" + (", *self.state_dict().values()" if rest else "")
    prototype = f"{entry['result']} {entry['name']}({' '.join(entry['arguments'].split())});"
    return (
        "import pathlib\n\n"
        "from reference_model import Model\n"
        "from torch.utils.cpp_extension import load_inline\n\n"
        f"source = pathlib.Path(__file__).with_name({path.name!r}).read_text()\n"
        f"extension = load_inline(\n    name={path.stem!r},\n    cpp_sources={prototype!r},\n"
        f"    cuda_sources=source,\n    functions=[{entry['name']!r}],\n"
        '    extra_cuda_cflags=["-O3"],\n)\n\n\n'
        "class ModelNew(Model):\n    def forward(self, *inputs):\n"
        f"        return extension.{entry['name']}({passed})\n"
    )


def _expected(inputs: Sequence[str], state: Sequence[str]) -> str:
    arguments = ", ".join(f"torch::Tensor {name}" for name in inputs)
    text = (
        f"expected a C++ function `torch::Tensor f({arguments}) {{ … }}` that launches the kernel"
    )
    if state:
        more = ", ".join(f"torch::Tensor {name.replace('.', '_')}" for name in state)
        text += f", or one that takes the weights, too: `f({arguments}, {more})`"
    return text


def _got(text: str, function: str) -> str:
    if function:
        return f"no function {function!r}"
    if "__global__" in text:
        return "a __global__ function alone, whose launch (grid, block, arguments) nobody states"
    return "no such function"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"expected a readable text file, got {path}: {error}") from error
