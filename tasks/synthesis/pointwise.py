"""Operators that work element by element: activations, arithmetic, a second operand."""

from __future__ import annotations

from typing import Any

from kernelgym.tasks.synthesis.draft import Draft
from kernelgym.tasks.synthesis.operator import Operator
from kernelgym.tasks.synthesis.values import Layout, Value

__all__ = ["OPERATORS"]

_KEEP = "keep"


def _pointwise(
    name: str,
    family: str,
    template: str,
    *,
    nonnegative: bool | str = False,
    idle_on_nonnegative: bool = False,
    wants_nonnegative: bool = False,
    **choices: tuple[Any, ...],
) -> Operator:
    """An operator given by its expression in `x` and options to draw.

    Args:
        name: Its name in torch.
        family: Its family.
        template: The expression; options in braces.
        nonnegative: Whether the result is never negative; `"keep"`: where the operand is.
        idle_on_nonnegative: Whether it would only copy, or scale, what is never negative.
        wants_nonnegative: Whether it is undefined for negative operands.
        **choices: Option -> what to draw it from.
    """

    def accepts(value: Value) -> bool:
        if value.layout is Layout.SCALAR:
            return False
        return (
            value.nonnegative
            if wants_nonnegative
            else not (idle_on_nonnegative and value.nonnegative)
        )

    def apply(draft: Draft) -> None:
        options = {key: draft.choose(key, among) for key, among in choices.items()}
        sign = draft.value.nonnegative if nonnegative == _KEEP else bool(nonnegative)
        draft.then(template.format(**options), draft.value.replace(nonnegative=sign))

    return Operator(name, family, accepts, apply)


def _rectifier(name: str, template: str, *, nonnegative: bool = False, **choices: Any) -> Operator:
    return _pointwise(
        name, "rectifier", template, nonnegative=nonnegative, idle_on_nonnegative=True, **choices
    )


def _smooth(name: str, template: str, **options: Any) -> Operator:
    return _pointwise(name, "smooth", template, **options)


def _arithmetic(name: str, template: str, **options: Any) -> Operator:
    return _pointwise(name, "arithmetic", template, **options)


def _with_parameter(value: Value) -> bool:
    return value.layout.value >= Layout.MATRIX.value and bool(_parameter_dim(value).name)


def _parameter_dim(value: Value) -> Any:
    return value.channels if value.layout.spatial else value.features


def _add_parameter(draft: Draft) -> None:
    shape = _parameter_dim(draft.value).name + ", 1" * draft.value.layout.spatial
    bias = draft.module("bias", f"nn.Parameter(torch.randn({shape}))")
    draft.then(f"x + {bias}", draft.value.replace(nonnegative=False))


def _scale_parameter(draft: Draft) -> None:
    shape = _parameter_dim(draft.value).name + ", 1" * draft.value.layout.spatial
    scale = draft.module("scale", f"nn.Parameter(torch.randn({shape}))")
    draft.then(f"x * {scale}", draft.value.replace(nonnegative=False))


def _accepts_prelu(value: Value) -> bool:
    channelled = value.layout.spatial > 0 or value.layout is Layout.MATRIX
    return channelled and bool(value.channels.name) and not value.nonnegative


def _prelu(draft: Draft) -> None:
    activation = draft.module("prelu", f"nn.PReLU({draft.value.channels.name})")
    draft.then(f"{activation}(x)", draft.value)


def _binary(name: str, expression: str) -> Operator:
    """An operator with a second input of the same shape."""

    def accepts(value: Value) -> bool:
        return value.named and value.layout is not Layout.VECTOR

    def apply(draft: Draft) -> None:
        other = draft.second_input("other", draft.value.dims)
        draft.then(expression.format(other=other), draft.value.replace(nonnegative=False))

    return Operator(name, "binary", accepts, apply)


def _accepts_glu(value: Value) -> bool:
    dim = value.channels if len(value.dims) > 1 else None
    return dim is not None and all(extent % 2 == 0 for extent in dim.extents)


def _glu(draft: Draft) -> None:
    channels = draft.value.channels
    half = type(channels)(channels.full // 2, channels.small // 2)
    draft.then("F.glu(x, dim=1)", draft.value.with_dim(1, half))


OPERATORS = (
    _rectifier("ReLU", "torch.relu(x)", nonnegative=True),
    _rectifier("ReLU6", "F.relu6(x)", nonnegative=True),
    _rectifier("LeakyReLU", "F.leaky_relu(x, {slope})", slope=(0.01, 0.1, 0.2)),
    _rectifier("ELU", "F.elu(x, alpha={alpha})", alpha=(0.5, 1.0, 2.0)),
    _rectifier("CELU", "F.celu(x, alpha={alpha})", alpha=(0.5, 1.5)),
    _rectifier("SELU", "F.selu(x)"),
    _rectifier("Abs", "torch.abs(x)", nonnegative=True),
    Operator("PReLU", "rectifier", _accepts_prelu, _prelu),
    _smooth("GELU", "F.gelu(x)"),
    _smooth("GELUTanh", 'F.gelu(x, approximate="tanh")'),
    _smooth("SiLU", "F.silu(x)"),
    _smooth("Mish", "F.mish(x)"),
    _smooth("Softplus", "F.softplus(x, beta={beta})", nonnegative=True, beta=(1.0, 2.0)),
    _smooth("Softsign", "F.softsign(x)", nonnegative=_KEEP),
    _smooth("Sigmoid", "torch.sigmoid(x)", nonnegative=True),
    _smooth("LogSigmoid", "F.logsigmoid(x)"),
    _smooth("Tanh", "torch.tanh(x)", nonnegative=_KEEP),
    _smooth("Tanhshrink", "F.tanhshrink(x)", nonnegative=_KEEP),
    _smooth("Atan", "torch.atan(x)", nonnegative=_KEEP),
    _smooth("Erf", "torch.erf(x)", nonnegative=_KEEP),
    _smooth("Asinh", "torch.asinh(x)", nonnegative=_KEEP),
    _smooth("Sin", "torch.sin(x)"),
    _smooth("Cos", "torch.cos(x)"),
    _smooth("Gaussian", "torch.exp(-torch.square(x))", nonnegative=True),
    _smooth("Log1p", "torch.log1p(x)", nonnegative=True, wants_nonnegative=True),
    _smooth("Sqrt", "torch.sqrt(x)", nonnegative=True, wants_nonnegative=True),
    _smooth(
        "Rsqrt", "torch.rsqrt(x + {eps})", nonnegative=True, wants_nonnegative=True, eps=(0.5, 1.0)
    ),
    _smooth("Reciprocal", "torch.reciprocal(x + 1.0)", nonnegative=True, wants_nonnegative=True),
    _smooth("LogAddExp", "torch.logaddexp(x, torch.sin(x))"),
    _arithmetic("Hardtanh", "F.hardtanh(x, {low}, {high})", low=(-0.5, -0.25), high=(0.5, 0.75)),
    _arithmetic("Hardswish", "F.hardswish(x)"),
    _arithmetic("Hardsigmoid", "F.hardsigmoid(x)", nonnegative=True),
    _arithmetic("Softshrink", "F.softshrink(x, {width})", width=(0.1, 0.25)),
    _arithmetic("Hardshrink", "F.hardshrink(x, {width})", width=(0.1, 0.25)),
    _arithmetic(
        "Threshold", "F.threshold(x, {threshold}, 0.0)", threshold=(0.1, 0.2), nonnegative=True
    ),
    _arithmetic("Square", "torch.square(x)", nonnegative=True),
    _arithmetic("Cube", "torch.pow(x, 3)", nonnegative=_KEEP),
    _arithmetic("Scale", "x * {factor}", factor=(0.5, 1.5, 2.0, 3.0), nonnegative=_KEEP),
    _arithmetic("Shift", "x + {offset}", offset=(0.5, 1.0), nonnegative=_KEEP),
    _arithmetic("Subtract", "x - {offset}", offset=(0.25, 0.5)),
    _arithmetic("Divide", "x / {divisor}", divisor=(1.5, 2.5, 4.0), nonnegative=_KEEP),
    _arithmetic(
        "Clamp", "torch.clamp(x, min={low}, max={high})", low=(-1.0, -0.25), high=(0.5, 0.9)
    ),
    _arithmetic("ReverseSubtract", "{constant} - x", constant=(1.0, 2.0)),
    _arithmetic("Lerp", "torch.lerp(x, torch.square(x), {weight})", weight=(0.25, 0.5)),
    _arithmetic("XTimesSigmoid", "x * torch.sigmoid({slope} * x)", slope=(1.702, 0.5)),
    Operator("Bias", "parameter", _with_parameter, _add_parameter),
    Operator("ChannelScale", "parameter", _with_parameter, _scale_parameter),
    _binary("Add", "x + {other}"),
    _binary("Mul", "x * {other}"),
    _binary("Sub", "x - {other}"),
    _binary("Maximum", "torch.maximum(x, {other})"),
    _binary("Minimum", "torch.minimum(x, {other})"),
    _binary("Gate", "x * torch.sigmoid({other})"),
    _binary("AddCMul", "torch.addcmul(x, {other}, {other}, value=0.5)"),
    _binary("Hypot", "torch.hypot(x, {other})"),
    Operator("GLU", "gating", _accepts_glu, _glu),
)
