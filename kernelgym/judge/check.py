"""The check: draws inputs, has the candidate run, and compares what it finds in the buffers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch

from kernelgym.config import JudgeConfig
from kernelgym.judge import protocol
from kernelgym.judge.buffers import Buffer, dtype_name, layout
from kernelgym.judge.correctness import Comparison, Expected, compare
from kernelgym.judge.defences import ALL_DEFENCES, Defences
from kernelgym.judge.device import free_bytes, new_buffer, release_unused, settle
from kernelgym.judge.failed import raised
from kernelgym.judge.failure import CheckFailed
from kernelgym.judge.process import CandidateProcess
from kernelgym.judge.reference import OutputSpec, Reference
from kernelgym.judge.rules import Evidence
from kernelgym.judge.verdict import Correctness
from kernelgym.toolchain.build import SourceFile

__all__ = ["Checker", "Observed", "Placed"]

_ROOM_FACTOR, _LEAST_ROOM = 3, 2**30
_PLACES, _PLACED_BYTES = 4, 2**30
_POISON = 0xFF  # NaN in every floating type, -1 in whole numbers


@dataclasses.dataclass(frozen=True)
class Observed:
    """What ran in one call besides the candidate's own kernels."""

    operators: tuple[protocol.Operator, ...]


@dataclasses.dataclass(frozen=True)
class Placed:
    """Inputs in the shared buffers, and where outputs go.

    Attributes:
        arguments: `forward`'s: slots of tensors, and plain values.
        outputs: Slots of the outputs, filled with what no kernel writes.
        fds: The buffers' descriptors, when the candidate has not got them yet.
        sizes: The buffers' bytes.
    """

    arguments: tuple[Any, ...]
    outputs: tuple[protocol.TensorSlot, ...]
    fds: tuple[int, ...]
    sizes: tuple[int, ...]


class Checker:
    """Checks one candidate against one reference.

    Attributes:
        correctness: What has been found so far; None before the first comparison.
        evidence: What ran besides the candidate's own work, for the ruleset.
        protections: What confined the candidate's process, by its own word.
        changed_flags: Global settings of torch that it changed, by its own word; they were put back.
        places: Where in shared memory the inputs of a timed call may lie, once they have been placed.
        peak_memory: Device bytes that its last call took, by its own word; None where unknown.
    """

    def __init__(
        self,
        reference: Reference,
        config: JudgeConfig,
        files: tuple[SourceFile, ...],
        defences: Defences = ALL_DEFENCES,
    ) -> None:
        self.defences = defences
        self._reference = reference
        self._files = files
        self._config = config
        self.correctness: Correctness | None = None
        self.protections: tuple[str, ...] = ()
        self.peak_memory: int | None = None
        self._keys_note = ""
        self.changed_flags: tuple[str, ...] = ()
        self._operators: tuple[protocol.Operator, ...] = ()
        self.evidence = Evidence()
        self._io: tuple[Buffer, Buffer] | None = None
        self.places = 1
        self._stride = 0

    def check(self, candidate: CandidateProcess) -> None:
        """Runs all draws, the first with a few elements changed and again, and a smaller shape.

        Raises:
            CheckFailed: The candidate is not correct.
        """
        self._construct(candidate)
        draws = self._config.draws
        first: list[Any] = []
        kept: tuple[Expected, ...] = ()
        for draw in range(draws):
            inputs = self._reference.inputs(draw)
            first = first or inputs
            got = self._run(candidate, inputs, draw)
            # Only now, when the outputs lie where the candidate cannot reach.
            expected = self._reference.expected(inputs, draw)
            self._judge_values(draw, got, expected)
            if draw == 0 and self._has_room_for(expected):
                kept = expected
            if draw == 0 and self.defences.repeated_draw:
                self._check_neighbour(candidate)
        if not self.defences.repeated_draw:
            return
        again = self._run(candidate, first, 0)
        expected = kept or self._reference.expected(first, 0)
        results = [compare(g, e) for g, e in zip(again, expected, strict=True)]
        stable = all(result.passed for result in results)
        assert self.correctness is not None
        self.correctness = dataclasses.replace(self.correctness, deterministic=stable)
        if not stable:
            raise CheckFailed(
                "check.unstable",
                "the first draw's inputs gave a wrong output when they came again, in the same "
                "memory, after other draws",
                ran=True,
            )
        self.correctness = dataclasses.replace(
            self.correctness, generalises=self._generalises(candidate, first, expected)
        )

    def _has_room_for(self, expected: tuple[Expected, ...]) -> bool:
        """Whether what the first draw should give may stay until that draw comes again."""
        nbytes = sum(value.value.nbytes for value in expected)
        return _ROOM_FACTOR * nbytes < free_bytes(self._reference.device)

    def _check_neighbour(self, candidate: CandidateProcess) -> None:
        """Runs the first draw with a few elements changed, right after it.

        Who tells inputs apart by a sample of their values takes these for the ones just seen.
        """
        inputs = self._reference.neighbour()
        if inputs is None:
            return
        got = self._run(candidate, inputs, 0)
        expected = self._reference.expected(inputs, 0)
        results = [compare(g, e) for g, e in zip(got, expected, strict=True)]
        wrong = next((result for result in results if not result.passed), None)
        if wrong is not None:
            raise CheckFailed(
                "check.unstable",
                "with a few elements changed, " + self._describe(0, wrong),
                ran=True,
            )

    def observe(self, candidate: CandidateProcess) -> Observed:
        """Runs the second draw (or the only one) once, for what an instrumented run sees.

        Raises:
            CheckFailed: The candidate raised.
        """
        self._construct(candidate)
        draw = min(1, self._config.draws - 1)
        inputs = self._reference.inputs(draw)
        got = self._run(candidate, inputs, draw)
        expected = self._reference.expected(inputs, draw)
        results = [compare(g, e) for g, e in zip(got, expected, strict=True)]
        wrong = next((result for result in results if not result.passed), None)
        if wrong is not None and self.defences.second_run:
            raise CheckFailed(
                "check.unstable",
                "with threads and blocks in another order: " + self._describe(draw, wrong),
                ran=True,
            )
        return Observed(self._operators)

    def is_decoy(self, candidate: CandidateProcess) -> bool:
        """Whether the output is right even while the candidate's kernels do nothing.

        Comes after `observe`, in the same process.
        """
        draw = self._config.draws + 1  # one that has not been seen
        inputs = self._reference.inputs(draw)
        try:
            got = self._run(candidate, inputs, draw, idle=True)
        except CheckFailed:
            return False
        expected = self._reference.expected(inputs, draw)
        return all(compare(g, e).passed for g, e in zip(got, expected, strict=True))

    # --- steps -------------------------------------------------------------------------------

    def _construct(self, candidate: CandidateProcess) -> None:
        reference = self._reference
        self._io = None
        imported = self.answer(candidate, protocol.Import(self._files), protocol.Imported, "import")
        self.protections = imported.protections
        made = self.answer(
            candidate,
            protocol.Construct(
                reference.init_args, reference.seed, reference.train, dtype_name(reference.dtype)
            ),
            protocol.Constructed,
            "construct",
        )
        have = {key: shape for key, shape, _ in made.state}
        missing = [
            key for key, value in reference.state.items() if have.get(key) != tuple(value.shape)
        ]
        if missing and not reference.keeps_construction:
            raise CheckFailed(
                "weights.keys",
                "ModelNew's state_dict lacks, or has in another shape: "
                + ", ".join(missing[:8])
                + (f" and {len(missing) - 8} more" if len(missing) > 8 else ""),
            )
        if missing:
            self._keys_note = (
                "; the state_dict lacks " + ", ".join(missing[:4]) + ", so weights are those that "
                "ModelNew's own constructor drew under the reference's seed"
            )
        shared = {key: value for key, value in reference.state.items() if key not in missing}
        if not shared:
            return
        slots, size = layout([(k, tuple(v.shape), v.dtype) for k, v in shared.items()])
        buffer = new_buffer(reference.device, size)
        for slot in slots:
            buffer.tensor(slot).copy_(shared[slot.name])
        settle(reference.device)
        command = protocol.LoadState(slots, (size,))
        self.answer(candidate, command, protocol.Loaded, "construct", (buffer.fd,))
        buffer.close()

    def _run(
        self,
        candidate: CandidateProcess,
        inputs: Sequence[Any],
        draw: int,
        wanted: Sequence[OutputSpec] | None = None,
        *,
        idle: bool = False,
    ) -> list[torch.Tensor]:
        """One forward: the outputs as found in the shared buffer."""
        placed = self.place(inputs, wanted)
        seed = self._reference.run_seed(draw)
        # The candidate's kernels want memory too.
        slots = (*placed.arguments, *placed.outputs)
        shared = sum(slot.nbytes for slot in slots if isinstance(slot, protocol.TensorSlot))
        release_unused(self._reference.device, _ROOM_FACTOR * max(shared, _LEAST_ROOM))
        command = protocol.Run(placed.arguments, seed, placed.outputs, placed.sizes, idle)
        ran = self.answer(candidate, command, protocol.Ran, "run", placed.fds)
        self.changed_flags = tuple(
            dict.fromkeys((*self.changed_flags, *(name[:40] for name in ran.changed_flags[:8])))
        )
        if not idle:
            self._operators = ran.operators
            self.evidence.note(ran.operators)
        if wanted is None and not idle:  # a smaller shape says nothing of the task's own
            self.peak_memory = ran.peak_memory or None
        self.expect_outputs(ran.outputs, placed.outputs)
        given = self._buffers()[0]
        for value, argument in zip(inputs, placed.arguments, strict=True):
            if not (isinstance(value, torch.Tensor) and self.defences.mutation):
                continue
            if not torch.equal(given.tensor(argument), value):
                raise CheckFailed(
                    "check.input_mutated", f"forward changed its {argument.name}", ran=True
                )
        if self.defences.aliasing and any(info.aliases_input for info in ran.outputs):
            raise CheckFailed(
                "check.output_aliases_input", "an output lies in an input's memory", ran=True
            )
        return self.taken(placed)

    def place(self, inputs: Sequence[Any], wanted: Sequence[OutputSpec] | None = None) -> Placed:
        """Copies inputs to where the candidate finds them, and poisons where outputs go.

        Args:
            inputs: `forward`'s arguments.
            wanted: What the outputs are; by default the reference's.
        """
        tensors = [
            (f"input {i}", tuple(v.shape), v.dtype)
            for i, v in enumerate(inputs)
            if isinstance(v, torch.Tensor)
        ]
        slots, size = layout(tensors)
        if wanted is None:
            wanted = self._reference.output_specs()
        outputs = [(f"output {i}", spec.shape, spec.dtype) for i, spec in enumerate(wanted)]
        out_slots, out_size = layout(outputs)
        # The same memory for every draw: whoever remembers an address finds new values there.
        fresh = self._io is None
        if self._io is None:
            device = self._reference.device
            small = _PLACES * max(size, out_size) <= _PLACED_BYTES
            self.places = _PLACES if small and device.type == "cuda" else 1
            self._stride = size
            self._io = new_buffer(device, self.places * size), new_buffer(device, out_size)
        given, taken = self._io
        arguments: list[Any] = []
        remaining = iter(slots)
        for value in inputs:
            if isinstance(value, torch.Tensor):
                slot = next(remaining)
                given.tensor(slot).copy_(value)
                arguments.append(slot)
            else:
                arguments.append(value)
        fds = (given.fd, taken.fd) if fresh else ()
        sizes = (self.places * self._stride, out_size)
        placed = Placed(tuple(arguments), out_slots, fds, sizes)
        self.poison(placed)
        settle(self._reference.device)
        return placed

    def moved(self, placed: Placed, place: int) -> Placed:
        """The same arguments at another of the `places` that the shared memory has for them."""
        shift = place * self._stride
        arguments = tuple(
            dataclasses.replace(value, offset=value.offset + shift)
            if isinstance(value, protocol.TensorSlot)
            else value
            for value in placed.arguments
        )
        return dataclasses.replace(placed, arguments=arguments)

    def shared(self, placed: Placed) -> list[Any]:
        """The arguments as they lie in the shared memory: what is written there, `forward` gets."""
        buffer = self._buffers()[0]
        return [
            buffer.tensor(value) if isinstance(value, protocol.TensorSlot) else value
            for value in placed.arguments
        ]

    def poison(self, placed: Placed) -> None:
        """Fills where outputs go with what no kernel writes."""
        buffer = self._buffers()[1]
        for slot in placed.outputs if self.defences.poison else ():
            buffer.fill(slot, _POISON)

    def taken(self, placed: Placed) -> list[torch.Tensor]:
        """Copies of the outputs, in memory that the candidate never had."""
        buffer = self._buffers()[1]
        return [buffer.tensor(slot).clone() for slot in placed.outputs]

    def _buffers(self) -> tuple[Buffer, Buffer]:
        assert self._io is not None
        return self._io

    @staticmethod
    def expect_outputs(
        infos: Sequence[protocol.OutputInfo], slots: Sequence[protocol.TensorSlot]
    ) -> None:
        """Raises `CheckFailed` unless the candidate returned what fits into the slots."""
        if len(infos) != len(slots):
            raise CheckFailed(
                "check.count", f"expected {len(slots)} output(s), got {len(infos)}", ran=True
            )
        for info, slot in zip(infos, slots, strict=True):
            if info.kind != "Tensor":
                raise CheckFailed(
                    "check.count",
                    f"{slot.name}: expected a torch.Tensor, got {info.kind}",
                    ran=True,
                )
            if info.shape != slot.shape:
                raise CheckFailed(
                    "check.shape", f"{slot.name}: expected {slot.shape}, got {info.shape}", ran=True
                )
            if info.dtype != slot.dtype:
                raise CheckFailed(
                    "check.dtype", f"{slot.name}: expected {slot.dtype}, got {info.dtype}", ran=True
                )

    def _judge_values(
        self, draw: int, got: Sequence[torch.Tensor], expected: Sequence[Expected]
    ) -> None:
        results = [compare(g, e) for g, e in zip(got, expected, strict=True)]
        wrong = next((result for result in results if not result.passed), None)
        before = self.correctness or Correctness(0, 0, 0.0)
        errors = [before.error, *(result.error for result in results)]
        known = [error for error in errors if error is not None]
        self.correctness = Correctness(
            draws=draw + 1,
            passed=before.passed + (wrong is None),
            error=max(known) if len(known) == len(errors) else None,
            bad_elements=wrong.bad if wrong else 0,
            elements=sum(result.elements for result in results),
            worst=wrong.worst if wrong else None,
            pattern=wrong.pattern if wrong else "",
        )
        if wrong is not None:
            raise CheckFailed(wrong.code, self._describe(draw, wrong), ran=True)

    def _describe(self, draw: int, wrong: Comparison) -> str:
        text = f"draw {draw}: {wrong.bad} of {wrong.elements} elements differ"
        if wrong.worst is not None:
            expected, got = (
                "not finite" if value is None else f"{value:.6g}"
                for value in (wrong.worst.expected, wrong.worst.got)
            )
            text += f"; worst at {list(wrong.worst.index)}: expected {expected}, got {got}"
        if wrong.pattern:
            text += f"; {wrong.pattern}"
        return text + self._keys_note

    def _generalises(
        self, candidate: CandidateProcess, inputs: Sequence[Any], expected: Sequence[Expected]
    ) -> bool | None:
        """Whether a smaller extent along the independent dimension is computed right too."""
        cut = self._reference.facts.slice_dim
        if cut is None or len(expected) != 1 or self._reference.upstream:
            return None
        extent = expected[0].value.shape[cut.output]
        if extent < 2:
            return None
        keep = extent - 1
        names = dict(cut.arguments)
        smaller = [
            value.narrow(names[spec.name], 0, keep).contiguous()
            if spec.name in names and isinstance(value, torch.Tensor)
            else value
            for spec, value in zip(self._reference.specs, inputs, strict=True)
        ]
        wanted = expected[0].narrow(cut.output, keep)
        try:
            spec = OutputSpec(tuple(wanted.value.shape), self._reference.output_specs()[0].dtype)
            got = self._run(candidate, smaller, 0, [spec])
        except CheckFailed:
            return False
        return compare(got[0], wanted).passed

    def answer(
        self,
        candidate: CandidateProcess,
        command: protocol.Command,
        expected: type[Any],
        phase: str,
        fds: tuple[int, ...] = (),
    ) -> Any:
        """Sends a command; whatever goes wrong becomes a `CheckFailed`."""
        ran = phase == "run"
        try:
            answer = candidate.ask(command, expected, fds)
        except protocol.CandidateTimeout:
            raise CheckFailed(
                "run.timeout",
                f"not finished after {self._config.run_timeout:g} s (phase: {phase})",
            ) from None
        except protocol.CandidateGone:
            raise CheckFailed(
                "run.died", f"{candidate.death()} (phase: {phase})", ran=ran
            ) from None
        if isinstance(answer, protocol.Failed):
            build = candidate.builds[-1] if candidate.builds else None
            raise raised(answer, build, phase, gpu=self._reference.device.type == "cuda")
        return answer
