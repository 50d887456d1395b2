"""The ruleset, decided on evidence: which torch operators ran, and whether own kernels did the work."""

from __future__ import annotations

from collections.abc import Sequence

from kernelgym.judge import protocol
from kernelgym.judge.defences import ALL_DEFENCES, Defences
from kernelgym.judge.failure import CheckFailed
from kernelgym.toolchain.build import Diagnostic

__all__ = ["Evidence"]

_MAX_SCALARS_TO_HOST = 16


class Evidence:
    """What a candidate ran besides its own work, over all runs."""

    def __init__(self) -> None:
        self._forbidden: list[protocol.Operator] = []
        self._hidden: list[protocol.Operator] = []

    def note(self, operators: Sequence[protocol.Operator]) -> None:
        """Keeps what `strict` does not allow, of every run: a candidate may tell them apart."""
        self._hidden += [op for op in operators if op.kind == "hidden"]
        if self._forbidden:
            return
        scalars = [op for op in operators if "_local_scalar_dense" in op.name]
        self._forbidden = [op for op in operators if op.kind in ("compute", "host")]
        if len(scalars) > _MAX_SCALARS_TO_HOST:
            self._forbidden += scalars

    def hidden(self, defences: Defences = ALL_DEFENCES) -> CheckFailed | None:
        """What ran where nobody should look; its time is in no account, so no ruleset has room for it."""
        if not (defences.witness and self._hidden):
            return None
        return CheckFailed(
            "rule.hidden_compute",
            f"{self._hidden[0].name} ran in forward where the recorder of torch's operators does "
            "not look",
        )

    def failure(
        self, ruleset: str, own_work: bool, defences: Defences = ALL_DEFENCES
    ) -> CheckFailed | None:
        """What the ruleset says of what ran.

        Args:
            ruleset: `"strict"` or `"kernelbench"`.
            own_work: Whether the candidate launched a kernel or called a library from its C++.
            defences: Which of the rules are in force.
        """
        if ruleset == "strict" and defences.operators and self._forbidden:
            first = self._forbidden[0]
            where = f" ({first.file}:{first.line})" if first.line else ""
            if first.kind != "compute":
                return CheckFailed(
                    "rule.host_compute", f"forward took values to the host: {first.name}{where}"
                )
            return CheckFailed(
                "rule.torch_compute",
                f"forward ran the torch operator {first.name}{where}; under the ruleset 'strict' "
                "this work belongs in a CUDA kernel of your own",
                diagnostics=tuple(
                    Diagnostic(
                        op.file,
                        op.line,
                        0,
                        "error",
                        f"ran the torch operator {op.name}",
                        tool="judge",
                        code="rule.torch_compute",
                    )
                    for op in self._forbidden[:20]
                ),
            )
        if defences.own_work and not own_work:
            return CheckFailed(
                "rule.no_own_kernel",
                "forward launched no kernel of yours and called no library from your C++",
            )
        return None
