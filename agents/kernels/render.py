"""From plans to the text of a workspace's `model_new.py`."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from kernelgym.agents.kernels.kernel import Code
from kernelgym.agents.kernels.plan import Plan
from kernelgym.agents.kernels.prelude import prelude_for
from kernelgym.agents.kernels.values import C_TYPES, Buffer
from kernelgym.errors import TaskFormatError

__all__ = ["render"]

_TORCH_TYPES = {
    "float": "torch::kFloat32",
    "double": "torch::kFloat64",
    "int64": "torch::kInt64",
    "int32": "torch::kInt32",
    "bool": "torch::kBool",
}
_MOST_FOR_INT = 2**31 - 2**12  # loops step up to a block beyond the last element


def render(source: str, plans: Sequence[Plan], choice: Mapping[str, int | str]) -> str:
    """The text of `model_new.py`.

    Args:
        source: The reference program; its `Model.__init__` is kept, so weights have its keys.
        plans: One, or one for training mode and one for evaluation mode.
        choice: `"<plan>.<kernel>.<knob>"` → choice; what is missing takes the first choice.

    Raises:
        TaskFormatError: The source has no class Model with a method forward.
    """
    kernels: list[str] = []
    hosts: list[str] = []
    all_codes: list[Code] = []
    for plan in plans:
        codes = [k.code(_choices(plan, k.name, choice)) for k in plan.kernels]
        names = {k.name: f"{plan.name}_{k.name}" for k in plan.kernels}
        for kernel, code in zip(plan.kernels, codes, strict=True):
            kernels.append(code.text.replace(f" {kernel.name}(", f" {names[kernel.name]}(", 1))
        all_codes += codes
        hosts.append(_host(plan, codes, names))
    body = "\n\n".join(kernels)
    cuda = "\n".join(
        part
        for part in (
            "#include <torch/extension.h>",
            "#include <ATen/cuda/CUDAContext.h>",
            "#include <cuda_runtime.h>",
            "#include <cstdint>",
            "",
            f"using index_t = {_index_type(plans, all_codes)};",
            "",
            prelude_for(body),
            body,
            "",
            "\n\n".join(hosts),
            "",
        )
    )
    return _python(source, plans, cuda)


def _choices(plan: Plan, kernel: str, choice: Mapping[str, int | str]) -> dict[str, int | str]:
    found: dict[str, int | str] = {}
    for name, knob in plan.knobs().items():
        owner, _, short = name.rpartition(".")
        if owner == kernel:
            found[short] = choice.get(f"{plan.name}.{name}", knob.choices[0])
    return found


def _index_type(plans: Sequence[Plan], codes: Sequence[Code]) -> str:
    """The type of indices: 32 bits where every element and thread can be counted with them."""
    threads = [code.blocks * code.threads for code in codes]
    buffers = [b.numel for plan in plans for k in plan.kernels for b in sum(k.arguments(), ())]
    return "int" if max(*threads, *buffers, 0) < _MOST_FOR_INT else "int64_t"


def _host(plan: Plan, codes: Sequence[Code], names: Mapping[str, str]) -> str:
    """The C++ function that allocates and launches."""
    parameters = ", ".join(_parameter(b) for b in plan.arguments)
    lines: list[str] = []
    for buffer in plan.arguments:
        lines.append(
            f"TORCH_CHECK({buffer.name}.is_contiguous() && {buffer.name}.numel() == "
            f'{buffer.numel}, "{buffer.name}: expected {buffer.numel} contiguous elements");'
        )
    device = f"{plan.arguments[0].name}.device()" if plan.arguments else "torch::kCUDA"
    lines.append("auto stream = at::cuda::getCurrentCUDAStream();")
    declared: set[Buffer] = set()
    for kernel, code in zip(plan.kernels, codes, strict=True):
        read, written = kernel.arguments()
        for buffer in written:
            if buffer not in declared:
                declared.add(buffer)
                lines.append(_allocation(buffer, device))
        pointers = [f"{b.name}.data_ptr<{C_TYPES[b.dtype]}>()" for b in (*read, *written)]
        launch = f"{names[kernel.name]}<<<{code.blocks}, {code.threads}, 0, stream>>>("
        lines += [launch, f"    {', '.join(pointers)});"]
    results = ", ".join(b.name for b in plan.outputs)
    return "\n".join(
        [
            f"std::vector<torch::Tensor> {plan.name}({parameters}) {{",
            *(f"  {line}" for line in lines),
            f"  return {{{results}}};",
            "}",
        ]
    )


def _allocation(buffer: Buffer, device: str) -> str:
    sizes = ", ".join(map(str, buffer.shape))
    return (
        f"auto {buffer.name} = torch::empty({{{sizes}}}, "
        f"torch::dtype({_TORCH_TYPES[buffer.dtype]}).device({device}));"
    )


def _python(source: str, plans: Sequence[Plan], cuda: str) -> str:
    """The reference's text with Model turned into ModelNew, whose forward calls the kernels."""
    tree = ast.parse(source)
    model = next((n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Model"), None)
    methods = [n for n in model.body if isinstance(n, ast.FunctionDef)] if model else []
    forward = next((n for n in methods if n.name == "forward"), None)
    if model is None or forward is None:
        raise TaskFormatError("reference.py: expected a class Model with a method forward")
    lines = source.splitlines()
    for node in ast.walk(model):
        if isinstance(node, ast.Name) and node.id == "Model":  # as in super(Model, self)
            line, at = lines[node.lineno - 1], node.col_offset
            lines[node.lineno - 1] = f"{line[:at]}ModelNew{line[at + len('Model') :]}"
    head = model.lineno - 1
    lines[head] = lines[head].replace("class Model", "class ModelNew", 1)
    start = min([model.lineno, *(d.lineno for d in model.decorator_list)]) - 1
    imports = [n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))]
    # (first line, line behind the last, what takes their place), from the end backwards.
    changes: list[tuple[int, int, list[str]]] = [
        (forward.body[0].lineno - 1, _end(forward), [f"        {n}" for n in _forward(plans)]),
        (start, start, _extension(plans, cuda)),
        (_end(imports[-1]), _end(imports[-1]), [_IMPORT]) if imports else (0, 0, [_IMPORT]),
    ]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in ("get_inputs", "get_init_inputs"):
            changes.append((node.lineno - 1, _end(node), []))
    for first, behind, text in sorted(changes, key=lambda change: -change[0]):
        lines[first:behind] = text
    return "\n".join(lines).rstrip() + "\n"


_IMPORT = "from torch.utils.cpp_extension import load_inline"


def _end(node: ast.stmt) -> int:
    """The number of a statement's last line."""
    return node.end_lineno or node.lineno


def _extension(plans: Sequence[Plan], cuda: str) -> list[str]:
    """The statements that build the kernels."""
    declared = [
        f"std::vector<torch::Tensor> {p.name}({', '.join(_parameter(b) for b in p.arguments)});"
        for p in plans
    ]
    return [
        f'CUDA_SOURCE = r"""\n{cuda}"""',
        "",
        'CPP_SOURCE = """',
        *declared,
        '"""',
        "",
        "kernels = load_inline(",
        '    name="kernels",',
        "    cpp_sources=CPP_SOURCE,",
        "    cuda_sources=CUDA_SOURCE,",
        f"    functions=[{', '.join(repr(p.name) for p in plans)}],",
        ")",
        "",
        "",
    ]


def _parameter(buffer: Buffer) -> str:
    return f"torch::Tensor {buffer.name}"


def _forward(plans: Sequence[Plan]) -> list[str]:
    """The statements of ModelNew.forward."""

    def call(plan: Plan) -> list[str]:
        given = [
            f"    {b.source}," if b.source.startswith("self.") else f"    {b.source}.contiguous(),"
            for b in plan.arguments
        ]
        return [f"results = kernels.{plan.name}(", *given, ")"]

    if len(plans) == 1:
        lines = call(plans[0])
    else:
        lines = [
            "if self.training:",
            *(f"    {line}" for line in call(plans[0])),
            "else:",
            *(f"    {line}" for line in call(plans[1])),
        ]
    return [*lines, "return tuple(results)" if plans[0].several else "return results[0]"]
