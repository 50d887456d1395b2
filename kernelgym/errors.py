"""Every error that kernelgym raises, as one tree.

::

    KernelGymError
    ├── UsageError (ValueError)      the caller's input is wrong; says what was expected and what came
    │   ├── ConfigError              a JudgeConfig or environment argument
    │   ├── UnknownTaskError         no task of that id
    │   ├── TaskFormatError          a task file or record that is not in KernelBench's form
    │   ├── EditError                an edit that cannot be read or applied
    │   └── RecordError              a verdict or trace that cannot be read back
    ├── AgentError                   an agent raised, or returned something that is no text
    └── EnvironmentFault             the harness or the machine is at fault, never the candidate
        ├── ToolchainFault           a compiler is missing or itself broken
        ├── ReferenceFault           the reference did not run (out of memory says how much it needs)
        └── SandboxFault             the candidate's process could not be started or isolated

What a candidate does wrong is never an exception: it is an `Outcome` in a `Verdict`.
"""

from __future__ import annotations

__all__ = [
    "AgentError",
    "ConfigError",
    "EditError",
    "EnvironmentFault",
    "KernelGymError",
    "RecordError",
    "ReferenceFault",
    "SandboxFault",
    "TaskFormatError",
    "ToolchainFault",
    "UnknownTaskError",
    "UsageError",
]


class KernelGymError(Exception):
    """Base of all errors that kernelgym raises on purpose."""


class UsageError(KernelGymError, ValueError):
    """The caller's input is wrong."""


class ConfigError(UsageError):
    """A configuration value is not one of those accepted."""


class UnknownTaskError(UsageError):
    """No task has that id; the message names the closest ones."""


class TaskFormatError(UsageError):
    """A task file or record is not in KernelBench's form."""


class EditError(UsageError):
    """An edit cannot be read, or does not apply to the workspace."""


class RecordError(UsageError):
    """A stored record (verdict, trace) cannot be read back."""


class AgentError(KernelGymError):
    """An agent raised, or returned something that is no text; the message names the turn."""


class EnvironmentFault(KernelGymError):
    """The harness or the machine failed; the candidate is not to blame and gets no verdict."""


class ToolchainFault(EnvironmentFault):
    """A compiler is missing, too old, or broke on something other than the candidate's source."""


class ReferenceFault(EnvironmentFault):
    """The task's own reference could not be run."""


class SandboxFault(EnvironmentFault):
    """The candidate's process could not be started or confined."""
