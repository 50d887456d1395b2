"""Operators that multiply and add: linear layers, matrix products, convolutions."""

from __future__ import annotations

from kernelgym.tasks.synthesis.draft import Draft
from kernelgym.tasks.synthesis.operator import Operator
from kernelgym.tasks.synthesis.values import Dim, Layout, Value

__all__ = ["OPERATORS", "window"]

_WIDTHS = (
    (256, 48),
    (512, 40),
    (768, 56),
    (1024, 64),
    (1536, 72),
    (2048, 48),
    (3000, 60),
    (4096, 80),
)
_CHANNELS = ((16, 8), (24, 16), (32, 16), (48, 8), (64, 16), (96, 24), (128, 16), (192, 24))


def window(dim: Dim, kernel: int, stride: int, padding: int, dilation: int = 1) -> Dim:
    """A spatial dimension after a window has slid over it; keeps its name if it keeps its size."""

    def extent(size: int) -> int:
        return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1

    full, small = extent(dim.full), extent(dim.small)
    return dim if (full, small) == dim.extents else Dim(full, small)


def _has_named_features(value: Value) -> bool:
    return value.layout in (Layout.MATRIX, Layout.SEQUENCE) and bool(value.features.name)


def _linear(bias: bool) -> Operator:
    def apply(draft: Draft) -> None:
        features = draft.value.features
        out = draft.dim("out_features", *draft.rng.choice(_WIDTHS))
        suffix = "" if bias else ", bias=False"
        layer = draft.module("linear", f"nn.Linear({features.name}, {out.name}{suffix})")
        draft.then(f"{layer}(x)", draft.value.with_dim(-1, out))

    return Operator("Linear" if bias else "LinearNoBias", "linear", _has_named_features, apply)


def _matmul(draft: Draft) -> None:
    features = draft.value.features
    columns = draft.dim("columns", *draft.rng.choice(_WIDTHS))
    other = draft.second_input("matrix", (features, columns))
    draft.then(f"torch.matmul(x, {other})", draft.value.with_dim(-1, columns))


def _accepts_bmm(value: Value) -> bool:
    return value.layout is Layout.SEQUENCE and bool(value.features.name and value.dims[0].name)


def _bmm(draft: Draft) -> None:
    features = draft.value.features
    columns = draft.dim("columns", *draft.rng.choice(_WIDTHS[:5]))
    other = draft.second_input("matrices", (draft.value.dims[0], features, columns))
    draft.then(f"torch.bmm(x, {other})", draft.value.with_dim(-1, columns))


def _accepts_gram(value: Value) -> bool:
    return value.layout is Layout.SEQUENCE


def _gram(draft: Draft) -> None:
    value = draft.value
    draft.then("torch.bmm(x, x.transpose(1, 2))", value.with_dim(2, value.dims[1]))


def _covariance(draft: Draft) -> None:
    value = draft.value
    draft.then("torch.bmm(x.transpose(1, 2), x)", value.with_dim(1, value.dims[2]))


def _low_rank(draft: Draft) -> None:
    features = draft.value.features
    rank = draft.dim("rank", *draft.rng.choice(((16, 4), (32, 8), (64, 8))))
    down = draft.module("down", f"nn.Linear({features.name}, {rank.name}, bias=False)")
    up = draft.module("up", f"nn.Linear({rank.name}, {features.name}, bias=False)")
    draft.then(f"x + {up}({down}(x))", draft.value.replace(nonnegative=False))


def _matvec(draft: Draft) -> None:
    features = draft.value.features
    vector = draft.module("vector", f"nn.Parameter(torch.randn({features.name}))")
    dims = draft.value.dims[:-1]
    draft.then(f"torch.matmul(x, {vector})", Value(Layout.of_rank(len(dims)), dims))


def _accepts_matvec(value: Value) -> bool:
    return value.layout is Layout.SEQUENCE and bool(value.features.name)


def _convolution(layout: Layout, style: str) -> Operator:
    """A convolution: `"plain"`, `"strided"`, `"dilated"`, `"depthwise"`, `"grouped"` or `"1x1"`."""
    rank = layout.spatial
    family = f"convolution{rank}d"
    needed = {"dilated": 6, "strided": 8}.get(style, 4)

    def accepts(value: Value) -> bool:
        return (
            value.layout is layout
            and bool(value.channels.name)
            and value.narrowest >= needed
            and (style != "grouped" or all(extent % 4 == 0 for extent in value.channels.extents))
        )

    def apply(draft: Draft) -> None:
        value = draft.value
        kernel = 1 if style == "1x1" else draft.choose("kernel", (3, 3, 5) if rank < 3 else (3,))
        stride = 2 if style == "strided" else 1
        dilation = 2 if style == "dilated" and kernel == 3 else 1
        padding = draft.choose("padding", (0, dilation * (kernel // 2))) if kernel > 1 else 0
        if value.narrowest <= dilation * (kernel - 1):
            padding = dilation * (kernel // 2)
        if style == "depthwise":
            out = value.channels
        else:
            out = draft.dim("out_channels", *draft.rng.choice(_CHANNELS))
        arguments = [value.channels.name, out.name, draft.constant("kernel_size", kernel)]
        for name, number, default in (
            ("stride", stride, 1),
            ("padding", padding, 0),
            ("dilation", dilation, 1),
        ):
            if number != default:
                arguments.append(f"{name}={draft.constant(name, number)}")
        if style == "depthwise":
            arguments.append(f"groups={value.channels.name}")
        elif style == "grouped":
            arguments.append(f"groups={draft.constant('groups', 4)}")
        if draft.choose("bias", (True, True, False)) is False:
            arguments.append("bias=False")
        layer = draft.module("conv", f"nn.Conv{rank}d({', '.join(arguments)})")
        spatial = tuple(window(d, kernel, stride, padding, dilation) for d in value.dims[2:])
        draft.then(f"{layer}(x)", Value(layout, (value.dims[0], out, *spatial)))

    prefix = {"plain": "", "1x1": "Pointwise"}.get(style, style.capitalize())
    return Operator(f"{prefix}Conv{rank}d", family, accepts, apply)


def _transposed(layout: Layout, stride: int) -> Operator:
    rank = layout.spatial

    def accepts(value: Value) -> bool:
        return value.layout is layout and bool(value.channels.name) and value.narrowest >= 3

    def apply(draft: Draft) -> None:
        value = draft.value
        kernel: int = draft.choose("kernel", (2, 4) if stride == 2 else (3,))
        padding: int = draft.choose("padding", (0, 1)) if kernel > 2 else 0
        out = draft.dim("out_channels", *draft.rng.choice(_CHANNELS[:6]))
        arguments = [value.channels.name, out.name, draft.constant("kernel_size", kernel)]
        if stride != 1:
            arguments.append(f"stride={draft.constant('stride', stride)}")
        if padding:
            arguments.append(f"padding={draft.constant('padding', padding)}")
        layer = draft.module("conv_transpose", f"nn.ConvTranspose{rank}d({', '.join(arguments)})")

        def extent(size: int) -> int:
            return (size - 1) * stride - 2 * padding + kernel

        spatial = tuple(Dim(extent(d.full), extent(d.small)) for d in value.dims[2:])
        draft.then(f"{layer}(x)", Value(layout, (value.dims[0], out, *spatial)))

    prefix = "Strided" if stride > 1 else ""
    return Operator(f"{prefix}ConvTranspose{rank}d", f"transposed{rank}d", accepts, apply)


_SPATIAL = (Layout.SIGNAL, Layout.IMAGE, Layout.VOLUME)

OPERATORS = (
    _linear(bias=True),
    _linear(bias=False),
    Operator("LowRankResidual", "linear", _has_named_features, _low_rank),
    Operator("Matmul", "matmul", _has_named_features, _matmul),
    Operator("BMM", "matmul", _accepts_bmm, _bmm),
    Operator("Gram", "matmul", _accepts_gram, _gram),
    Operator("Covariance", "matmul", _accepts_gram, _covariance),
    Operator("MatVec", "matmul", _accepts_matvec, _matvec),
    *(
        _convolution(layout, style)
        for layout in _SPATIAL
        for style in ("plain", "strided", "dilated", "depthwise", "grouped", "1x1")
    ),
    *(_transposed(layout, stride) for layout in _SPATIAL for stride in (1, 2)),
)
