"""What a synthesised candidate must pass, one filter after another, cheap ones first.

A candidate's fate follows from the candidate alone, so that many may be examined side by side.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import math
import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernelgym.judge.baselines import eager_seconds, reference_operators
from kernelgym.judge.operators import operator_kind
from kernelgym.judge.physics import DeviceModel
from kernelgym.judge.trial import Trial, gibibytes
from kernelgym.tasks import Task
from kernelgym.tasks import ids as catalogue_ids
from kernelgym.tasks.records import TaskRecord
from kernelgym.tasks.synthesis import BATCH, Composition, closest, syntax_tokens
from kernelgym.tasks.trace import fake_tensors

__all__ = ["Catalogue", "Criteria", "Examined", "Filter", "catalogue", "examine"]

_MAX_SIMILARITY = 0.9
# A network of the catalogue that runs more operators than this is no composition of five.
_MAX_CALLS = 40
_AIM = (1.5e-3, 60e-3)  # seconds; within the window with room for the model's error
_MAX_BATCH = 2**20
_COMPILED_ERROR = 1e-3  # relative to the outputs' root mean square


class Filter(enum.Enum):
    """What may drop a candidate, in the order applied."""

    NEAR_DUPLICATE = "near_duplicate"
    CONSTRUCTS = "constructs"
    MEMORY = "memory"
    RUNTIME = "runtime"
    SIGNATURE = "operator_signature"
    SIMILARITY = "syntax_similarity"
    EAGER = "eager"
    DETERMINISTIC = "deterministic"
    DEGENERATE = "degenerate"
    FULL_GRAPH = "full_graph"
    INDUCTOR = "inductor"


@dataclasses.dataclass(frozen=True)
class Criteria:
    """The thresholds.

    Attributes:
        device: Whose cost model gives the eager time.
        min_seconds: Least modelled eager time at `full`.
        max_seconds: Most modelled eager time at `full`.
        max_memory: Most bytes alive in a forward pass at `full`; by default a card of 16 GB does.
        inductor_share: Share of the candidates compiled with inductor too, from 0 to 1.
        compiles: Whether candidates are compiled at all, which resets this process's compiler.
    """

    device: DeviceModel
    min_seconds: float = 1e-3
    max_seconds: float = 100e-3
    max_memory: int = 14 * 10**9
    inductor_share: float = 0.01
    compiles: bool = True


@dataclasses.dataclass(frozen=True)
class Catalogue:
    """What decontamination compares with.

    Attributes:
        signatures: Ordered operators -> id of a task that runs them, and no others.
        tokens: Task id -> syntax of its `Model`.
    """

    signatures: Mapping[tuple[str, ...], str]
    tokens: Mapping[str, tuple[str, ...]]


@dataclasses.dataclass(frozen=True)
class Examined:
    """A candidate's fate.

    Attributes:
        index: Its number.
        dropped: The filter that dropped it, or None.
        detail: Why, for a reader.
        record: The task, where it was accepted.
        inductor: Whether inductor compiled it, beside `aot_eager`.
    """

    index: int
    dropped: Filter | None
    detail: str
    record: TaskRecord | None
    inductor: bool = False


@functools.cache
def catalogue() -> Catalogue:
    """The 250 tasks' signatures and syntax. Runs them on fake tensors: takes seconds."""
    from kernelgym import tasks

    signatures: dict[tuple[str, ...], str] = {}
    tokens = {}
    for task_id in catalogue_ids():
        task = tasks.get(task_id)
        tokens[task_id] = syntax_tokens(task.text)
        if signature := _signature(task):
            signatures.setdefault(signature, task_id)
    return Catalogue(signatures, tokens)


def examine(
    index: int, seed: int, composition: Composition, criteria: Criteria, known: Catalogue
) -> Examined:
    """Takes one candidate through the filters.

    Args:
        index: Its number, from which its id and the inductor sample follow.
        seed: The set's seed.
        composition: The candidate.
        criteria: The thresholds.
        known: What it must not resemble.
    """
    candidate = _Candidate(index, seed, composition, criteria, known)
    for name, check in candidate.filters():
        try:
            why = check()
        except Exception as error:  # a filter that a candidate's program fails in drops it
            why = f"{type(error).__name__}: {error}"
        if why:
            return Examined(index, name, why, None)
    return Examined(index, None, "", candidate.record(), candidate.sampled)


class _Candidate:
    """A candidate on its way; each filter returns why it drops it, or `""`."""

    def __init__(
        self,
        index: int,
        seed: int,
        composition: Composition,
        criteria: Criteria,
        known: Catalogue,
    ) -> None:
        self._id = f"synth/{seed}/{index:05d}"
        self._composition = composition
        self._criteria = criteria
        self._known = known
        self._seconds = 0.0
        digest = hashlib.sha256(self._id.encode()).digest()
        self._rng = random.Random(digest)
        self.sampled = criteria.compiles and self._rng.random() < criteria.inductor_share
        self._task = self._with_batch(composition.presets[BATCH][0])

    def filters(self) -> Iterator[tuple[Filter, Callable[[], str]]]:
        """The filters in order, but for near-duplicates, which are not one candidate's affair."""
        yield Filter.CONSTRUCTS, self._constructs
        yield Filter.MEMORY, self._memory
        yield Filter.RUNTIME, self._runtime
        yield Filter.SIGNATURE, self._operator_signature
        yield Filter.SIMILARITY, self._similarity
        yield Filter.EAGER, self._eager
        yield Filter.DETERMINISTIC, self._deterministic
        yield Filter.DEGENERATE, self._degenerate
        if not self._criteria.compiles:
            return
        yield Filter.FULL_GRAPH, lambda: self._compiles("aot_eager")
        if self.sampled:
            yield Filter.INDUCTOR, lambda: self._compiles("inductor")

    def record(self) -> TaskRecord:
        """What is kept of an accepted candidate."""
        composition = self._composition
        return TaskRecord(
            id=self._id,
            text=self._task.text,
            name=composition.name,
            split=composition.split,
            operators=composition.operators,
            composition=composition.composition,
            modelled_seconds=float(f"{self._seconds:.4g}"),
        )

    def _with_batch(self, batch: int) -> Task:
        text = self._composition.with_batch(batch).source()
        return Task(self._id, 0, 0, self._composition.name, self._id, text)

    def _constructs(self) -> str:
        """Both sizes run on fake tensors; then the batch at `full` is scaled to a time drawn."""
        self._task.facts("small")
        base = self._composition.presets[BATCH][0]
        memory = self._task.facts("full").memory_bytes
        seconds = self._modelled(self._task)
        larger = self._modelled(self._with_batch(4 * base))
        slope = (larger - seconds) / (3 * base)
        low, high = map(math.log, _AIM)
        aim = math.exp(self._rng.uniform(low, high))
        batch = base + (aim - seconds) / slope if slope > 0 else base
        batch = min(batch, base * self._criteria.max_memory / memory, _MAX_BATCH)
        self._task = self._with_batch(_round(batch))
        return ""

    def _memory(self) -> str:
        needed = self._task.facts("full").memory_bytes
        if needed > self._criteria.max_memory:
            limit = gibibytes(self._criteria.max_memory)
            return f"expected at most {limit} at full, got {gibibytes(needed)}"
        return ""

    def _runtime(self) -> str:
        self._seconds = self._modelled(self._task)
        low, high = self._criteria.min_seconds, self._criteria.max_seconds
        if not low <= self._seconds <= high:
            return f"expected {low} to {high} s at full, got {self._seconds:.3g}"
        return ""

    def _modelled(self, task: Task) -> float:
        calls = reference_operators(task, "full", train=True)
        return eager_seconds(self._criteria.device, calls)

    def _operator_signature(self) -> str:
        twin = self._known.signatures.get(_signature(self._task) or ())
        return f"expected operators of its own, got those of {twin}" if twin else ""

    def _similarity(self) -> str:
        tokens = syntax_tokens(self._task.text)
        match = closest(tokens, self._known.tokens, above=_MAX_SIMILARITY)
        if match is None:
            return ""
        name, ratio = match
        return f"expected a similarity of at most {_MAX_SIMILARITY}, got {ratio:.2f} to {name}"

    @functools.cached_property
    def _trial(self) -> Trial:
        return Trial(self._task, "small", train=True)

    def _eager(self) -> str:
        self._trial.run(self._trial.inputs(0, 0))
        return ""

    def _deterministic(self) -> str:
        return "" if self._trial.repeats() else "expected the same outputs twice, got others"

    def _degenerate(self) -> str:
        return self._trial.degeneracy()

    def _compiles(self, backend: str) -> str:
        """One full graph whose outputs are those of eager execution."""
        inputs = self._trial.inputs(0, 0)
        expected = self._trial.run(inputs)
        torch._dynamo.reset()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of torch's own compilers, about themselves
            got = self._trial.run(inputs, program=torch.compile(backend=backend, fullgraph=True))
        for own, other in zip(expected.outputs, got.outputs, strict=True):
            error = (own - other).square().mean().sqrt()
            if not bool(error <= _COMPILED_ERROR * own.square().mean().sqrt()):
                return f"expected the outputs of eager execution from {backend}, got others"
        return ""


def _round(batch: float) -> int:
    """The next number below of the form 2^n or 3 * 2^n, at least 1."""
    power = 1 << int(math.log2(max(batch, 1.0)))
    return power * 3 // 2 if power >= 2 and batch >= power * 1.5 else power


class _TooMany(Exception):
    pass


class _Signature(TorchDispatchMode):
    """Collects what computes; in-place variants and overloads count as their operator."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call, unused-ignore]
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if operator_kind(func) == "compute":
            self.names.append(func._schema.name.split("::")[-1].rstrip("_"))
            if len(self.names) > _MAX_CALLS:
                raise _TooMany
        return func(*args, **(kwargs or {}))


def _signature(task: Task) -> tuple[str, ...] | None:
    """The operators of one forward pass in train mode, in order; None where they are too many."""
    module = task.module("small")
    with fake_tensors(), torch.no_grad():
        model = module.Model(*module.get_init_inputs()).train()
        inputs = module.get_inputs()
        with _Signature() as signature:
            try:
                model(*inputs)
            except _TooMany:
                return None
    return tuple(signature.names)
