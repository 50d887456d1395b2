"""Is an output right? An fp64 oracle, an error budget, and a report that helps.

Under the protocol `audited` an element may differ from the fp64 result by

    budget = 8 x the reference's own largest error + fraction x RMS of the output
             + 1e-5 x |expected|

so that honest rounding passes however the sum was ordered, while zeros, a wrong epsilon or half
precision do not, however small the output is. `fraction` belongs to the precision class. Under
`kernelbench` and `cuda_agent` the rule is upstream's `allclose` against the reference's own output.
"""

from __future__ import annotations

import dataclasses
import math

import torch

from kernelgym.errors import ReferenceFault
from kernelgym.judge.verdict import Mismatch

__all__ = ["Comparison", "Expected", "compare", "describe_pattern"]

# Fraction of the output's RMS that arithmetic of a class may lose. Honest fp32 kernels were seen at
# up to 2.5e-5 on an H200, TF32 at 3e-4, half-precision outputs at 5.5e-4.
_RMS_FRACTION = {"default": 5e-5, "ieee": 5e-5, "tf32": 2e-3, "fp16": 5e-3, "bf16": 4e-2}
_REFERENCE_FACTOR = 8.0
_RELATIVE = 1e-5
_PIECE = 2**26


@dataclasses.dataclass(frozen=True)
class Expected:
    """What one output should be.

    Attributes:
        value: The fp64 oracle's output (or the reference's own, under a fixed tolerance).
        floor: The part of each element's budget that is the same for all.
        relative: The part that goes with |value|.
        scores: For outputs that are indices of an extreme value: the fp64 values they point into.
        dim: The dimension of `scores` that they index.
    """

    value: torch.Tensor
    floor: float = 0.0
    relative: float = 0.0
    scores: torch.Tensor | None = None
    dim: int = 0

    @classmethod
    def from_oracle(cls, oracle: torch.Tensor, reference: torch.Tensor, precision: str) -> Expected:
        """By the error budget.

        Args:
            oracle: Output of the reference in fp64.
            reference: Output of the reference in its own precision.
            precision: Precision class.

        Raises:
            ReferenceFault: The oracle's output is not finite.
        """
        if not oracle.is_floating_point():
            return cls(oracle)
        oracle = oracle.double()
        norm, own = _moments(oracle, reference)
        if not math.isfinite(norm):
            raise ReferenceFault("expected a finite output of the fp64 reference, got NaN or inf")
        if not math.isfinite(own):
            raise ReferenceFault("expected a finite output of the reference, got NaN or inf")
        rms = norm / math.sqrt(max(oracle.numel(), 1))
        base = _REFERENCE_FACTOR * own + _RMS_FRACTION[precision] * rms
        # Denormals are flushed by some compilers' fast modes; they are nobody's error.
        return cls(oracle, max(base, 1e-30), _RELATIVE)

    @classmethod
    def from_index(cls, oracle: torch.Tensor, scores: torch.Tensor) -> Expected:
        """For an argmax or argmin: any index is right whose value is as extreme as the oracle's.

        Args:
            oracle: Indices that the reference gave.
            scores: The fp64 values that it searched.

        Raises:
            ReferenceFault: The indices do not point at the extreme values of any dimension.
        """
        for dim in range(scores.dim()):
            if scores.select(dim, 0).numel() != oracle.numel():
                continue
            if int(oracle.max()) >= scores.shape[dim]:
                continue
            chosen = _at(scores, dim, oracle)
            if bool((chosen == scores.amax(dim)).all()) or bool((chosen == scores.amin(dim)).all()):
                return cls(oracle, scores=scores, dim=dim)
        raise ReferenceFault("expected indices of extreme values along one dimension")

    @classmethod
    def from_tolerance(cls, reference: torch.Tensor, tolerance: float) -> Expected:
        """By upstream's rule: |difference| <= tolerance + tolerance x |reference|."""
        return cls(reference.double(), tolerance, tolerance)

    @property
    def budget(self) -> torch.Tensor:
        """Largest allowed |difference| of each element, in fp64."""
        return self.value.double().abs() * self.relative + self.floor

    def narrow(self, dim: int, length: int) -> Expected:
        """The first `length` entries of a dimension, under the same budget."""
        value, scores = self.value.narrow(dim, 0, length), self.scores
        if scores is not None:
            # Indices may lack the dimension that they point along.
            lacks = value.dim() < scores.dim() and dim >= self.dim
            scores = scores.narrow(dim + lacks, 0, length)
        return dataclasses.replace(self, value=value, scores=scores)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What came of comparing one output.

    Attributes:
        passed: Whether every element is within its budget.
        error: Largest |difference| / budget; None where something is not finite.
        bad: Number of elements beyond their budget.
        elements: Number compared.
        worst: The worst element, when it did not pass.
        pattern: What the bad elements have in common.
        code: Reason code when it did not pass: `"check.not_finite"`, `"check.tail"`,
            `"check.constant"` or `"check.values"`.
    """

    passed: bool
    error: float | None
    bad: int
    elements: int
    worst: Mismatch | None = None
    pattern: str = ""
    code: str = ""


def compare(got: torch.Tensor, expected: Expected) -> Comparison:
    """Compares an output with what was expected; shapes are equal already."""
    value = expected.value
    if value.numel() == 0:
        return Comparison(True, 0.0, 0, 0)
    if expected.scores is not None:
        got = _ties_resolved(got, expected)
    bad, largest = _differences(got, expected)
    finite = math.isfinite(largest)
    if value.is_floating_point():
        error = largest if finite else None
    else:
        error = 0.0 if bad == 0 else None
    if bad == 0:
        return Comparison(True, error, 0, value.numel())
    budget = expected.budget
    difference = (got.double() - value.double()).abs()
    wrong = ~(difference <= budget)
    ranked = torch.where(torch.isfinite(difference), difference, torch.inf)
    ranked = torch.where(wrong, ranked / budget.clamp_min(1e-300), -1.0)
    flat = int(ranked.argmax())
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), value.shape))
    worst = Mismatch(index, _finite(value.flatten()[flat]), _finite(got.flatten()[flat]))
    pattern, code = describe_pattern(wrong, got, value)
    return Comparison(False, error, bad, value.numel(), worst, pattern, code)


def _moments(oracle: torch.Tensor, reference: torch.Tensor) -> tuple[float, float]:
    """The norm of an oracle, and the largest error of the reference; not finite where either is.

    Piece by piece, so that no temporary is as large as the output.
    """
    if oracle.numel() == 0:
        return 0.0, 0.0
    norms, errors = [], []
    for exact, own in zip(_pieces(oracle), _pieces(reference), strict=True):
        norms.append(torch.linalg.vector_norm(exact))
        errors.append(_largest(torch.sub(own, exact)))
    norm = torch.linalg.vector_norm(torch.stack(norms))
    return float(norm), float(torch.stack(errors).max())


def _differences(got: torch.Tensor, expected: Expected) -> tuple[int, float]:
    """How many elements are beyond their budget, and the largest error in units of it."""
    pairs = list(zip(_pieces(got), _pieces(expected.value), strict=True))
    if expected.relative > 0.0:
        errors = []
        for mine, exact in pairs:
            # |difference| / (relative x (|exact| + floor / relative)): the fewest passes.
            budget = exact.abs().add_(expected.floor / expected.relative)
            errors.append(_largest(torch.sub(mine, exact).div_(budget)))
        largest = float(torch.stack(errors).max()) / expected.relative
        if largest <= 1.0:
            return 0, largest
    counts, errors = [], []
    for mine, exact in pairs:
        exact = exact.double()
        difference = (mine.double() - exact).abs_()
        budget = exact.abs().mul_(expected.relative).add_(expected.floor)
        counts.append((~(difference <= budget)).sum())  # NaN compares false, so NaN is wrong
        # Where no difference is allowed, none is no error.
        errors.append(torch.where(difference == 0, 0.0, difference.div_(budget)).max())
    return int(torch.stack(counts).sum()), float(torch.stack(errors).max())


def _largest(difference: torch.Tensor) -> torch.Tensor:
    """The largest absolute value, NaN where there is one."""
    low, high = torch.aminmax(difference)
    return torch.maximum(-low, high)


def _pieces(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return torch.split(tensor.reshape(-1), _PIECE)


def describe_pattern(
    wrong: torch.Tensor, got: torch.Tensor, expected: torch.Tensor
) -> tuple[str, str]:
    """What the wrong elements have in common, for a reader.

    Args:
        wrong: Boolean mask, at least one true.
        got: The output.
        expected: What it should be.

    Returns:
        A phrase and a reason code.
    """
    bad = int(wrong.sum())
    values = got[wrong]
    if got.is_floating_point() and bool(torch.isnan(values).all()):
        place = _place(wrong)
        code = "check.tail" if "last" in place else "check.not_finite"
        return f"{place}all wrong elements are NaN (never written?)", code
    if got.is_floating_point() and not bool(torch.isfinite(values).all()):
        count = int((~torch.isfinite(values)).sum())
        return f"{_place(wrong)}{count} wrong elements are NaN or infinite", "check.not_finite"
    if bad == wrong.numel() and bool((got == got.flatten()[0]).all()):
        return f"every element is {_finite(got.flatten()[0])}", "check.constant"
    place = _place(wrong)
    code = "check.tail" if place else "check.values"
    if bool((values == 0).all()):
        return f"{place}all wrong elements are 0", code
    if expected.is_floating_point():
        reference = expected[wrong].double()
        ratio = values.double() / torch.where(reference == 0, torch.nan, reference)
        middle = float(ratio.nanmedian())
        close = (ratio - middle).abs() <= 1e-3 * abs(middle)
        if math.isfinite(middle) and bool(close.double().mean() > 0.99) and bad > 8:
            return f"{place}wrong elements are {middle:.6g} times what was expected", code
    return place.removesuffix(": "), code


_AXES = {
    1: ("elements",),
    2: ("rows", "columns"),
    3: ("batches", "rows", "columns"),
    4: ("batches", "channels", "rows", "columns"),
}


def _place(wrong: torch.Tensor) -> str:
    """`"all errors in the last 31 columns: "` where they lie at an end of one axis, else `""`."""
    if wrong.dim() == 0:
        return ""
    names = _AXES.get(wrong.dim(), tuple(f"indices of axis {d}" for d in range(wrong.dim())))
    for axis in reversed(range(wrong.dim())):
        extent = wrong.shape[axis]
        others = [d for d in range(wrong.dim()) if d != axis]
        hit = wrong.any(dim=others) if others else wrong
        where = hit.nonzero().flatten()
        first, last, count = int(where[0]), int(where[-1]), int(where.numel())
        if count == extent or extent == 1:
            continue
        if last == extent - 1 and count == extent - first and count <= extent // 2:
            return f"all errors in the last {count} {names[axis]}: "
        if first == 0 and count == last + 1 and count <= extent // 2:
            return f"all errors in the first {count} {names[axis]}: "
        if count == 1:
            return f"all errors at index {first} of {names[axis]}: "
        steps = set((where[1:] - where[:-1]).tolist())
        if len(steps) == 1 and count > 2 and (step := steps.pop()) > 1:
            return f"all errors at {names[axis]} {first}, {first + step}, {first + 2 * step}, …: "
    return ""


def _at(scores: torch.Tensor, dim: int, index: torch.Tensor) -> torch.Tensor:
    """The scores that indices point at; `index` has the scores' shape without `dim`, or with 1."""
    shape = list(scores.shape)
    del shape[dim]
    return scores.gather(dim, index.reshape(shape).unsqueeze(dim)).squeeze(dim)


def _ties_resolved(got: torch.Tensor, expected: Expected) -> torch.Tensor:
    """`got` with every index replaced by the expected one where the values there are equal."""
    assert expected.scores is not None
    scores, dim = expected.scores, expected.dim
    inside = (got >= 0) & (got < scores.shape[dim])
    there = _at(scores, dim, torch.where(inside, got, 0).long())
    best = _at(scores, dim, expected.value)
    tied = (there == best).reshape(got.shape) & inside
    return torch.where(tied, expected.value, got)


def _finite(value: torch.Tensor) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None
