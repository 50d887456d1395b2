"""Operators that combine elements along dimensions: reductions, softmax, norms, scans, pooling."""

from __future__ import annotations

from typing import Any

from kernelgym.tasks.synthesis.contractions import window
from kernelgym.tasks.synthesis.draft import Draft
from kernelgym.tasks.synthesis.operator import Operator
from kernelgym.tasks.synthesis.values import Dim, Layout, Value

__all__ = ["OPERATORS"]

_SPATIAL = (Layout.SIGNAL, Layout.IMAGE, Layout.VOLUME)


def _long(value: Value) -> bool:
    """Whether there is something behind the batch to combine."""
    return len(value.dims) >= 2 and all(min(dim.extents) > 1 for dim in value.dims[1:])


def _axes(value: Value) -> tuple[tuple[int, ...], ...]:
    """Groups of dimensions that it makes sense to reduce together."""
    if value.layout.spatial > 1:
        return (1,), tuple(range(2, len(value.dims)))
    return tuple((position,) for position in range(1, len(value.dims)))


def _dim_text(axes: tuple[int, ...]) -> str:
    return str(axes[0]) if len(axes) == 1 else str(axes)


def _reduction(
    name: str, template: str, *, nonnegative: bool | None = False, single: bool = False
) -> Operator:
    """A reduction; `nonnegative` None keeps the operand's sign, `single` takes one dimension."""

    def apply(draft: Draft) -> None:
        value = draft.value
        groups = tuple(axes for axes in _axes(value) if not single or len(axes) == 1)
        axes = draft.choose("dim", groups)
        dims = tuple(dim for position, dim in enumerate(value.dims) if position not in axes)
        layout = Layout.of_rank(len(dims))
        if value.layout is Layout.VOLUME and axes == (1,):
            layout = Layout.IMAGE
        sign = value.nonnegative if nonnegative is None else nonnegative
        draft.then(template.format(dim=_dim_text(axes)), Value(layout, dims, sign))

    return Operator(name, "reduction", _long, apply)


def _softmax(name: str, template: str, *, nonnegative: bool) -> Operator:
    def apply(draft: Draft) -> None:
        value = draft.value
        dim = draft.choose("dim", tuple(sorted({1, len(value.dims) - 1})))
        draft.then(template.format(dim=dim), value.replace(nonnegative=nonnegative))

    return Operator(name, "softmax", _long, apply)


def _scan(name: str, template: str, *, nonnegative: bool | None) -> Operator:
    def apply(draft: Draft) -> None:
        value = draft.value
        dim = draft.choose("dim", tuple(sorted({1, len(value.dims) - 1})))
        sign = value.nonnegative if nonnegative is None else nonnegative
        draft.then(template.format(dim=dim), value.replace(nonnegative=sign))

    return Operator(name, "scan", _long, apply)


def _accepts_feature_norm(value: Value) -> bool:
    return value.layout in (Layout.MATRIX, Layout.SEQUENCE) and bool(value.features.name)


def _feature_norm(kind: str) -> Operator:
    def apply(draft: Draft) -> None:
        layer = draft.module("norm", f"nn.{kind}({draft.value.features.name})")
        draft.then(f"{layer}(x)", draft.value.replace(nonnegative=False))

    return Operator(kind, "normalisation", _accepts_feature_norm, apply)


def _channel_norm(kind: str, layout: Layout) -> Operator:
    """BatchNorm or InstanceNorm over the channels of a layout."""

    def accepts(value: Value) -> bool:
        return value.layout is layout and bool(value.channels.name)

    def apply(draft: Draft) -> None:
        name = f"{kind}{max(layout.spatial, 1)}d"
        affine = (
            ", affine=True" if kind == "InstanceNorm" and draft.choose("affine", (0, 1)) else ""
        )
        layer = draft.module("norm", f"nn.{name}({draft.value.channels.name}{affine})")
        draft.then(f"{layer}(x)", draft.value.replace(nonnegative=False))

    suffix = "Features" if layout is Layout.MATRIX else f"{layout.spatial}d"
    return Operator(f"{kind}{suffix}", "normalisation", accepts, apply)


def _accepts_groups(value: Value) -> bool:
    channelled = value.layout.spatial > 0 and bool(value.channels.name)
    return channelled and all(extent % 8 == 0 for extent in value.channels.extents)


def _group_norm(draft: Draft) -> None:
    groups = draft.constant("num_groups", draft.choose("groups", (2, 4, 8)))
    layer = draft.module("norm", f"nn.GroupNorm({groups}, {draft.value.channels.name})")
    draft.then(f"{layer}(x)", draft.value.replace(nonnegative=False))


def _normalize(draft: Draft) -> None:
    value = draft.value
    dim = draft.choose("dim", tuple(sorted({1, len(value.dims) - 1})))
    order = draft.choose("p", (1.0, 2.0))
    draft.then(f"F.normalize(x, p={order}, dim={dim})", value)


def _local_response(draft: Draft) -> None:
    size = draft.choose("size", (3, 5))
    draft.then(f"F.local_response_norm(x, {size}, alpha=0.5)", draft.value)


def _pool(kind: str, layout: Layout) -> Operator:
    """Max, average or power-average pooling with a window."""
    rank = layout.spatial

    def accepts(value: Value) -> bool:
        return value.layout is layout and value.narrowest >= 4

    def apply(draft: Draft) -> None:
        value = draft.value
        kernel = draft.choose("pool", (2, 3))
        stride = draft.choose("pool_stride", (kernel, 2) if rank > 1 else (kernel, 2, 1))
        padding = draft.choose("pool_padding", (0, 1)) if kernel == 3 and kind != "LP" else 0
        spatial = tuple(window(dim, kernel, stride, padding) for dim in value.dims[2:])
        arguments = f"{kernel}, stride={stride}" + (f", padding={padding}" if padding else "")
        call = {
            "Max": f"F.max_pool{rank}d(x, {arguments})",
            "Avg": f"F.avg_pool{rank}d(x, {arguments})",
            "LP": f"F.lp_pool{rank}d(x, 2.0, {arguments})",
        }[kind]
        sign = True if kind == "LP" else value.nonnegative
        draft.then(call, Value(layout, (*value.dims[:2], *spatial), sign))

    return Operator(f"{kind}Pool{rank}d", "pooling", accepts, apply)


def _adaptive_pool(kind: str, layout: Layout) -> Operator:
    rank = layout.spatial

    def accepts(value: Value) -> bool:
        return value.layout is layout and value.narrowest >= 6

    def apply(draft: Draft) -> None:
        value = draft.value
        extent = draft.choose("output_size", (2, 3, 4, 6))
        spatial = (Dim(extent, extent),) * rank
        call = f"F.adaptive_{kind}_pool{rank}d(x, {extent})"
        draft.then(call, Value(layout, (*value.dims[:2], *spatial), value.nonnegative))

    return Operator(f"Adaptive{kind.capitalize()}Pool{rank}d", "pooling", accepts, apply)


def _upsample(mode: str, layout: Layout) -> Operator:
    def accepts(value: Value) -> bool:
        return value.layout is layout and value.narrowest >= 2

    def apply(draft: Draft) -> None:
        value = draft.value
        spatial = tuple(Dim(2 * dim.full, 2 * dim.small) for dim in value.dims[2:])
        draft.then(
            f'F.interpolate(x, scale_factor=2, mode="{mode}")',
            Value(layout, (*value.dims[:2], *spatial), value.nonnegative),
        )

    return Operator(f"{mode.capitalize()}Upsample{layout.spatial}d", "resampling", accepts, apply)


def _accepts_shuffle(value: Value) -> bool:
    return value.layout is Layout.IMAGE and all(
        extent % 4 == 0 for extent in value.channels.extents
    )


def _pixel_shuffle(draft: Draft) -> None:
    value = draft.value
    channels = Dim(value.channels.full // 4, value.channels.small // 4)
    spatial = tuple(Dim(2 * dim.full, 2 * dim.small) for dim in value.dims[2:])
    dims = (value.dims[0], channels, *spatial)
    draft.then("F.pixel_shuffle(x, 2)", Value(Layout.IMAGE, dims, value.nonnegative))


def _flatten(value: Value) -> Value:
    full = small = 1
    for dim in value.dims[1:]:
        full, small = full * dim.full, small * dim.small
    return Value(Layout.MATRIX, (value.dims[0], Dim(full, small)), value.nonnegative)


def _flattened_softmax(draft: Draft) -> None:
    flat: Any = _flatten(draft.value).replace(nonnegative=True)
    draft.then("torch.softmax(x.flatten(1), dim=1)", flat)


def _is_spatial(value: Value) -> bool:
    return value.layout in (Layout.IMAGE, Layout.SIGNAL) and _long(value)


OPERATORS = (
    _reduction("Sum", "torch.sum(x, dim={dim})", nonnegative=None),
    _reduction("Mean", "torch.mean(x, dim={dim})", nonnegative=None),
    _reduction("AMax", "torch.amax(x, dim={dim})", nonnegative=None),
    _reduction("AMin", "torch.amin(x, dim={dim})", nonnegative=None),
    _reduction("LogSumExp", "torch.logsumexp(x, dim={dim})"),
    _reduction("Variance", "torch.var(x, dim={dim})", nonnegative=True),
    _reduction("Std", "torch.std(x, dim={dim}, correction=0)", nonnegative=True),
    _reduction("L1Norm", "torch.linalg.vector_norm(x, ord=1, dim={dim})", nonnegative=True),
    _reduction("L2Norm", "torch.linalg.vector_norm(x, dim={dim})", nonnegative=True),
    _reduction("Range", "torch.amax(x, dim={dim}) - torch.amin(x, dim={dim})", nonnegative=True),
    _reduction("MeanSquare", "torch.mean(torch.square(x), dim={dim})", nonnegative=True),
    _softmax("Softmax", "torch.softmax(x, dim={dim})", nonnegative=True),
    _softmax("LogSoftmax", "torch.log_softmax(x, dim={dim})", nonnegative=False),
    _softmax("Softmin", "F.softmin(x, dim={dim})", nonnegative=True),
    Operator("SpatialSoftmax", "softmax", _is_spatial, _flattened_softmax),
    _scan("Cumsum", "torch.cumsum(x, dim={dim})", nonnegative=None),
    _scan("Cummax", "torch.cummax(x, dim={dim}).values", nonnegative=None),
    _scan("Cummin", "torch.cummin(x, dim={dim}).values", nonnegative=None),
    _scan("LogCumsumExp", "torch.logcumsumexp(x, dim={dim})", nonnegative=False),
    _scan("ReverseCumsum", "torch.cumsum(x.flip({dim}), dim={dim}).flip({dim})", nonnegative=None),
    _feature_norm("LayerNorm"),
    _feature_norm("RMSNorm"),
    _channel_norm("BatchNorm", Layout.MATRIX),
    *(_channel_norm(kind, layout) for layout in _SPATIAL for kind in ("BatchNorm", "InstanceNorm")),
    Operator("GroupNorm", "normalisation", _accepts_groups, _group_norm),
    Operator("Normalize", "normalisation", _long, _normalize),
    Operator("LocalResponseNorm", "normalisation", _is_spatial, _local_response),
    *(_pool(kind, layout) for layout in _SPATIAL for kind in ("Max", "Avg")),
    _pool("LP", Layout.SIGNAL),
    _pool("LP", Layout.IMAGE),
    *(_adaptive_pool(kind, layout) for layout in _SPATIAL for kind in ("avg", "max")),
    *(_upsample("nearest", layout) for layout in _SPATIAL),
    _upsample("bilinear", Layout.IMAGE),
    _upsample("trilinear", Layout.VOLUME),
    Operator("PixelShuffle", "resampling", _accepts_shuffle, _pixel_shuffle),
)
