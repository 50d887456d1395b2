"""Losses and distances: a second input beside the value, and one number for each sample or in all."""

from __future__ import annotations

from typing import Any

from kernelgym.tasks.synthesis.draft import Draft
from kernelgym.tasks.synthesis.operator import Operator
from kernelgym.tasks.synthesis.values import Layout, Value

__all__ = ["OPERATORS"]


def _has_target(value: Value) -> bool:
    return value.named and value.layout in (Layout.MATRIX, Layout.SEQUENCE)


def _loss(
    name: str,
    function: str,
    extra: str = "",
    *,
    expression: str = "torch.rand({})",
    law: tuple[Any, ...] | None = None,
) -> Operator:
    """An elementwise loss, averaged over each sample or over everything.

    A mean over everything hardly differs between two draws of one law, and a task should be more
    than one number: most are taken over each sample.
    """

    def apply(draft: Draft) -> None:
        value = draft.value
        target = draft.second_input("target", value.dims, expression=expression, law=law)
        arguments = ", ".join(filter(None, ("x", target, extra)))
        if draft.choose("reduction", ("sample", "sample", "mean")) == "mean":
            draft.then(f"F.{function}({arguments})", Value(Layout.SCALAR, ()))
            return
        axes = 1 if value.layout is Layout.MATRIX else (1, 2)
        draft.then(
            f'F.{function}({arguments}, reduction="none").mean(dim={axes})',
            Value(Layout.VECTOR, value.dims[:1]),
        )

    return Operator(name, "loss", _has_target, apply, last=True)


def _is_matrix(value: Value) -> bool:
    return value.layout is Layout.MATRIX and value.named


def _cross_entropy(draft: Draft) -> None:
    batch, classes = draft.value.dims
    expression = f"torch.randint({classes.name}, ({{}},))"
    target = draft.second_input("target", (batch,), expression=expression)
    smoothing = draft.choose("label_smoothing", (0.0, 0.1))
    extra = f", label_smoothing={smoothing}" if smoothing else ""
    draft.then(
        f'F.cross_entropy(x, {target}, reduction="none"{extra})', Value(Layout.VECTOR, (batch,))
    )


def _kl_divergence(draft: Draft) -> None:
    value = draft.value
    target = draft.second_input(
        "target",
        value.dims,
        expression="torch.softmax(torch.rand({}), dim=-1)",
        law=("probabilities",),
    )
    axes = 1 if value.layout is Layout.MATRIX else (1, 2)
    draft.then(
        f'F.kl_div(torch.log_softmax(x, dim=-1), {target}, reduction="none").sum(dim={axes})',
        Value(Layout.VECTOR, value.dims[:1]),
    )


def _distance(name: str, expression: str) -> Operator:
    def apply(draft: Draft) -> None:
        value = draft.value
        other = draft.second_input("other", value.dims)
        dims = value.dims[:-1]
        draft.then(expression.format(other=other), Value(Layout.of_rank(len(dims)), dims))

    return Operator(name, "distance", _has_target, apply)


OPERATORS = (
    _loss("MSELoss", "mse_loss"),
    _loss("L1Loss", "l1_loss"),
    _loss("SmoothL1Loss", "smooth_l1_loss", "beta=0.5"),
    _loss("HuberLoss", "huber_loss", "delta=0.75"),
    _loss(
        "SoftMarginLoss",
        "soft_margin_loss",
        expression="torch.randint(2, ({},)) * 2.0 - 1.0",
        law=("sign",),
    ),
    _loss("BCEWithLogitsLoss", "binary_cross_entropy_with_logits", law=("uniform", 0.0, 1.0)),
    _loss("PoissonNLLLoss", "poisson_nll_loss", "log_input=True", law=("uniform", 0.0, 4.0)),
    Operator("CrossEntropyLoss", "loss", _is_matrix, _cross_entropy, last=True),
    Operator("KLDivLoss", "loss", _has_target, _kl_divergence, last=True),
    _distance("CosineSimilarity", "F.cosine_similarity(x, {other}, dim=-1)"),
    _distance("SquaredDistance", "torch.sum(torch.square(x - {other}), dim=-1)"),
    _distance("InnerProduct", "torch.sum(x * {other}, dim=-1)"),
    _distance("ChebyshevDistance", "torch.amax(torch.abs(x - {other}), dim=-1)"),
)
