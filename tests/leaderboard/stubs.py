"""A judge that reads its verdict in the candidate's text, and an agent that sends given texts."""

from __future__ import annotations

from pathlib import Path

from kernelgym.config import JudgeConfig
from kernelgym.edits import Submit, WriteFile, render
from kernelgym.errors import EnvironmentFault
from kernelgym.judge.verdict import (
    Correctness,
    Coverage,
    Measurement,
    Outcome,
    Provenance,
    Speedup,
    Timing,
    Verdict,
)

FIXTURES = Path(__file__).parent / "entries"
DEVICE = "NVIDIA H200"
PROTECTIONS = ("landlock", "no_network", "no_new_privileges", "no_processes", "rlimits")


class StubJudge:
    """`speed=2` in the text is a speedup of 2; `wrong!`, `cheat!`, `fault!` are what they say."""

    def __init__(self, config: JudgeConfig | None = None, *, device=DEVICE, drift=1.0) -> None:
        self.config = config or JudgeConfig()
        self.size = "full"
        self.device = device
        self.drift = drift
        self.judged: list[str] = []
        self.closed = False
        self.protections = PROTECTIONS
        self.source = "modelled" if device == "emulator" else "measured"

    def evaluate(self, task, workspace) -> Verdict:
        text = "\n".join(workspace.files.values())
        if "fault!" in text:
            raise EnvironmentFault("the GPU fell off the bus")
        self.judged.append(task.id)
        common = {
            "task": task.id,
            "source_hash": workspace.hash,
            "message": "",
            "provenance": self._provenance(),
        }
        if "speed=" not in text or "cheat!" in text:
            return Verdict(outcome=Outcome.REJECTED, reason="rule.torch_compute", **common)
        if "wrong!" in text:
            return Verdict(outcome=Outcome.INCORRECT, reason="check.tail", **common)
        speed = float(text.split("speed=")[1].split()[0]) * self.drift
        return Verdict(
            outcome=Outcome.CORRECT,
            reason="",
            correctness=Correctness(5, 5, 0.2),
            timing=self._timing(speed),
            coverage=Coverage(0.75, 0.25, 0.0),
            peak_memory=100,
            peak_memory_eager=200,
            **common,
        )

    def _timing(self, speed: float) -> Timing:
        return Timing(
            candidate=self._time(1e-3 / speed),
            eager=self._time(1e-3),
            compile=self._time(0.5e-3),
            speedup_eager=Speedup(speed, speed * 0.99, speed * 1.01),
            speedup_compile=Speedup(speed / 2, speed / 2 * 0.99, speed / 2 * 1.01),
            light_fraction=min(1.0, speed / 4),
        )

    def _time(self, seconds: float) -> Measurement:
        return Measurement(seconds, seconds * 0.99, seconds * 1.01, 20, self.source)

    def _provenance(self) -> Provenance:
        config = self.config
        return Provenance(
            kernelgym="0.1.0",
            torch="2.11.0",
            device=self.device,
            protocol=config.protocol,
            ruleset=config.ruleset,
            precision=config.precision,
            size=self.size,
            protection=config.protection,
            protections=self.protections,
        )

    def close(self) -> None:
        self.closed = True


class Maker:
    """Makes stub judges for what wants to make its own, and keeps the last one."""

    def __init__(self, **how) -> None:
        self.how = how
        self.made: list[StubJudge] = []

    def __call__(self, config: JudgeConfig) -> StubJudge:
        self.made.append(StubJudge(config, **self.how))
        return self.made[-1]


def source(speed: float, note: str = "") -> str:
    return f"class ModelNew:\n    pass\n# speed={speed} {note}\n"


class Scripted:
    """An agent that writes the given texts for a task, one a turn."""

    def __init__(self, scripts: dict[str, list[str]]) -> None:
        self.scripts = scripts
        self.left: list[str] = []

    def reset(self, info) -> None:
        self.left = list(self.scripts[info["task_id"]])

    def __call__(self, observation, info) -> str:
        if not self.left:
            return render(Submit())
        return render(WriteFile("model_new.py", self.left.pop(0)))


SCRIPTS = {
    "L1/19": [source(0.5), source(2.0), source(1.5)],
    "L1/23": [source(1.2, "wrong!"), source(4.0)],
    "L2/76": [source(1.0, "cheat!")],
    "L3/9": [],
}
