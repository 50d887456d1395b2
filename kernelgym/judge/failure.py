"""How the judge's parts say that a candidate is not correct."""

from __future__ import annotations

from collections.abc import Sequence

from kernelgym.toolchain.build import Diagnostic

__all__ = ["CheckFailed"]


class CheckFailed(Exception):
    """A candidate is not correct. Internal to the judge: it ends in a verdict.

    Attributes:
        reason: Reason code.
        message: For a reader.
        diagnostics: Where, if anywhere.
        ran: Whether a kernel may have run, so that an instrumented run can tell more.
        output: What the candidate printed.
    """

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        diagnostics: Sequence[Diagnostic] = (),
        ran: bool = False,
        output: str = "",
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.diagnostics = tuple(diagnostics)
        self.ran = ran
        self.output = output
