"""The judge's defences one by one, so that tests can show what each is there for.

A test that an exploit fails proves little when nothing would have let it through. So each defence
can be switched off, and the exploits of `tests/exploits` must then succeed. There is no way to do so
but the argument `defences` of `Judge`: no configuration, command or environment variable reaches
it. A verdict that was reached with one missing says so in `provenance.protections`, and no
leaderboard takes it (see `is_complete`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

__all__ = ["ALL_DEFENCES", "OFF", "Defences", "is_complete"]

OFF = "off:"
"""What the name of a defence follows in `provenance.protections`, where it was off."""


@dataclasses.dataclass(frozen=True)
class Defences:
    """Which defences are in force; all, unless a test says otherwise.

    Attributes:
        screen: The source is read before anything runs.
        operators: Torch operators that run in `forward` are recorded and held against the ruleset.
        witness: On the emulator, torch's own profiler lists what all threads ran.
        own_work: Kernels and library calls of the candidate's must do the needed share.
        decoys: On the emulator, the output must change when the kernels do nothing.
        instrumentation: Kernels that run unwatched are refused.
        native_calls: A library that calls what no kernel needs (`mprotect`, `dlsym`, …) is refused.
        host_guard: On the emulator, tensors are out of the host's reach outside of kernels.
        raw_memory: On the emulator, Python has no `ctypes`, `gc`, or other way to an address.
        threads: On the emulator, no thread can be started.
        salted_inputs: Draws are salted, of several laws; off, each is the same U[0,1).
        budget: An fp64 oracle with an error budget; off, `allclose` at 1e-2.
        repeated_draw: The first draw comes again after the others, in the same memory.
        second_run: The values of the instrumented run count too.
        findings: Memory errors and races of the instrumented run count.
        poison: Outputs are filled with NaN before each call.
        mutation: Inputs are compared with what was handed out.
        aliasing: Outputs may not lie in an input.
        plain_outputs: Outputs must be plain tensors, and no code of a class of theirs is run.
        restored_state: Weights are put back before each call.
        traffic: No call moves less than the task has to, and none is faster than light.
        clock: On a GPU, claimed times are held against the grader's clock.
        timed_outputs: On a GPU, outputs of timed calls are checked.
        fresh_timed_inputs: On a GPU, each timed call gets other values.
        confinement: The candidate's process is confined.
    """

    screen: bool = True
    operators: bool = True
    witness: bool = True
    own_work: bool = True
    decoys: bool = True
    instrumentation: bool = True
    native_calls: bool = True
    host_guard: bool = True
    raw_memory: bool = True
    threads: bool = True
    salted_inputs: bool = True
    budget: bool = True
    repeated_draw: bool = True
    second_run: bool = True
    findings: bool = True
    poison: bool = True
    mutation: bool = True
    aliasing: bool = True
    plain_outputs: bool = True
    restored_state: bool = True
    traffic: bool = True
    clock: bool = True
    timed_outputs: bool = True
    fresh_timed_inputs: bool = True
    confinement: bool = True

    @classmethod
    def without(cls, *names: str) -> Defences:
        """All but those named.

        Raises:
            TypeError: There is no defence of that name.
        """
        return cls(**dict.fromkeys(names, False))

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Every defence."""
        return tuple(field.name for field in dataclasses.fields(cls))

    def missing(self) -> tuple[str, ...]:
        """Those that are off, as `provenance.protections` states them: `"off:poison"`."""
        return tuple(OFF + name for name in self.names() if not getattr(self, name))


ALL_DEFENCES = Defences()


def is_complete(protections: Iterable[str]) -> bool:
    """Whether a verdict with these protections was reached with every defence in force."""
    return not any(name.startswith(OFF) for name in protections)
