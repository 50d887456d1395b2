"""`JudgeConfig`: the one record that says how a candidate is judged, used everywhere."""

from __future__ import annotations

import dataclasses
from typing import Any

from kernelgym.errors import ConfigError

__all__ = [
    "BASELINES",
    "PRECISIONS",
    "PROTECTIONS",
    "PROTOCOLS",
    "RULESETS",
    "SIZES",
    "JudgeConfig",
]

SIZES = ("auto", "small", "medium", "full")
PROTOCOLS = ("audited", "kernelbench", "cuda_agent")
RULESETS = ("strict", "kernelbench")
PRECISIONS = ("default", "ieee", "tf32", "fp16", "bf16")
BASELINES = ("eager", "compile")
PROTECTIONS = ("basic", "standard", "hardened")


@dataclasses.dataclass(frozen=True)
class JudgeConfig:
    """How a candidate is judged.

    Attributes:
        device: `"auto"` (a CUDA GPU if there is one, else the emulator), `"cpu"` (the emulator),
            `"cuda"` or `"cuda:N"`.
        size: Which shapes: `"small"`, `"medium"`, `"full"` (KernelBench v0.1's), or `"auto"`:
            `small` on the emulator, `full` on a GPU.
        protocol: What counts as correct. `"audited"`: salted inputs of several laws, an fp64
            oracle, an error budget; `"kernelbench"`: upstream's rules (seed 42, U[0,1), train mode,
            1e-4); `"cuda_agent"`: the paper's (eval mode, 1e-2).
        ruleset: What a candidate may call. `"strict"`: in `forward` only what it built itself;
            `"kernelbench"`: torch operators are allowed for what is not replaced.
        precision: Which arithmetic counts as honest: `"default"` (PyTorch's own), `"ieee"`,
            `"tf32"`, `"fp16"` or `"bf16"`.
        baselines: What a time is compared with.
        counters: Whether to count memory traffic, bank conflicts and the like, and on a GPU to say
            what the kernels' machine code is made of.
        draws: Number of input draws in the correctness check, at least 1.
        seed: Seeds everything that is drawn. `None` draws a fresh secret salt for each verdict.
        build_timeout: Wall-clock limit of one build, in seconds.
        run_timeout: Wall-clock limit of the candidate's process apart from builds, in seconds.
        memory_limit: Memory that the candidate's process may take beyond its inputs, in bytes.
        architecture: The GPU architecture that nvcc checks a source against where it is present,
            such as `"sm_90"`.
        nvcc_check: Whether, on the emulator, nvcc also compiles the source where it is present.
        protection: How the candidate is confined; see `docs/judge.md`.
        energy: Whether to measure joules per call, which takes some fifteen seconds more. A GPU
            only, with the module `pynvml` (`pip install nvidia-ml-py`); elsewhere without effect.
        live_baselines: Whether, on a GPU, `torch.compile` is measured beside each candidate even
            where a stored ratio to eager mode fits: it takes seconds more.

    Raises:
        ConfigError: A value is not one of those accepted.
    """

    device: str = "auto"
    size: str = "auto"
    protocol: str = "audited"
    ruleset: str = "strict"
    precision: str = "default"
    baselines: tuple[str, ...] = BASELINES
    counters: bool = True
    draws: int = 5
    seed: int | None = None
    build_timeout: float = 120.0
    run_timeout: float = 60.0
    memory_limit: int = 8 * 2**30
    architecture: str = "sm_90"
    nvcc_check: bool = False
    protection: str = "standard"
    energy: bool = False
    live_baselines: bool = False

    def __post_init__(self) -> None:
        """Refuse what no judge understands."""
        object.__setattr__(self, "baselines", tuple(self.baselines))
        _expect_one_of("size", self.size, SIZES)
        _expect_one_of("protocol", self.protocol, PROTOCOLS)
        _expect_one_of("ruleset", self.ruleset, RULESETS)
        _expect_one_of("precision", self.precision, PRECISIONS)
        _expect_one_of("protection", self.protection, PROTECTIONS)
        for baseline in self.baselines:
            _expect_one_of("baselines", baseline, BASELINES)
        if self.device not in ("auto", "cpu", "cuda") and not (
            self.device.startswith("cuda:") and self.device[5:].isdigit()
        ):
            raise ConfigError(
                f"device: expected 'auto', 'cpu', 'cuda' or 'cuda:N', got {self.device!r}"
            )
        if not isinstance(self.draws, int) or self.draws < 1:
            raise ConfigError(f"draws: expected a whole number of at least 1, got {self.draws!r}")
        for name in ("build_timeout", "run_timeout", "memory_limit"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name}: expected more than 0, got {getattr(self, name)!r}")

    def replace(self, **changes: Any) -> JudgeConfig:
        """Returns a copy with some fields changed.

        Raises:
            ConfigError: A name is not a field, or a value is not accepted.
        """
        known = {field.name for field in dataclasses.fields(self)}
        for name in changes:
            if name not in known:
                raise ConfigError(f"expected one of {', '.join(sorted(known))}, got {name!r}")
        return dataclasses.replace(self, **changes)


def _expect_one_of(name: str, value: object, accepted: tuple[str, ...]) -> None:
    if value not in accepted:
        raise ConfigError(f"{name}: expected one of {', '.join(accepted)}, got {value!r}")
