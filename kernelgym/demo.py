"""The demonstration: agents edit CUDA code in front of you, and every step is really judged."""

from __future__ import annotations

import importlib.resources
import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelgym.config import JudgeConfig
from kernelgym.errors import UsageError
from kernelgym.feedback import printable
from kernelgym.writing import writing

if TYPE_CHECKING:
    from rich.console import Console

    from kernelgym.runner import Agent
    from kernelgym.runs import TaskResult
    from kernelgym.tasks import Task

__all__ = ["ScriptedAgent", "play_demo", "script"]

_SCRIPTED_TASK = "L1/23"
_SEARCHED_TASK = "L1/36"
_MAX_TURNS = 8
_SEARCH_TURNS = 3
_DIFF_LINES = 48
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


class ScriptedAgent:
    """Sends texts that were written before: the mistakes in them are ones that people make.

    Args:
        texts: One for each turn.
    """

    def __init__(self, texts: tuple[str, ...]) -> None:
        self._texts = texts
        self._left: Iterator[str] = iter(())

    def reset(self, info: dict[str, Any]) -> None:
        """Starts from the first text."""
        self._left = iter(self._texts)

    def __call__(self, observation: Any, info: dict[str, Any]) -> str:
        """The next text; after the last one, `submit`."""
        return next(self._left, "submit")


def script() -> tuple[str, ...]:
    """The texts of the scripted agent, for task L1/23."""
    folder = importlib.resources.files("kernelgym") / "templates"
    found = sorted(
        (entry for entry in folder.iterdir() if entry.name.startswith("demo_")),
        key=lambda entry: entry.name,
    )
    return tuple(entry.read_text(encoding="utf-8") for entry in found)


def play_demo(out: Path, console: Console) -> bool:
    """Plays the demonstration and writes its run folder and report.

    Args:
        out: The folder; one of an earlier demonstration is replaced.
        console: Where to show it.

    Returns:
        Whether every task ended with a correct kernel.

    Raises:
        UsageError: `out` holds something else.
        EnvironmentFault: Nothing can be judged on this machine.
    """
    from kernelgym.judging import LazyJudge
    from kernelgym.report import write_report

    _make_room(out)
    console.print(
        "[bold]kernelgym[/]: an agent gets a PyTorch program and replaces its work by CUDA code. "
        "Nothing below is a mock: each edit is compiled, run and checked by the judge. Kernels run "
        "on the emulator here, so their times are modelled from the memory traffic that it counts."
    )
    judge = LazyJudge(JudgeConfig(device="cpu"))
    try:
        _warm_up(console)
        begin = time.perf_counter()
        results = [_play(_SCRIPTED_TASK, ScriptedAgent(script()), _MAX_TURNS, out, judge, console)]
        results.append(_play(_SEARCHED_TASK, _search(), _SEARCH_TURNS, out, judge, console))
    finally:
        judge.close()
    pages = [write_report(folder, folder / "report.html") for folder in sorted(out.iterdir())]
    _farewell(console, pages, time.perf_counter() - begin)
    for result in results:
        if result.fault:
            console.print(f"{result.task_id}: {result.fault}", markup=False)
    return all(result.solved for result in results)


class _Show:
    """Prints an episode while it is played."""

    def __init__(self, console: Console, whose: str) -> None:
        self.console = console
        self.whose = whose
        self._waiting = console.status("the judge compiles, runs and checks…")
        self._asked = 0.0

    def stop(self) -> None:
        """Ends the spinner, if it is there."""
        self._waiting.stop()

    def start(self, task: Task) -> None:
        self.console.print()
        self.console.print(f"[bold]── {task.id} {task.name}[/], played by {self.whose}")
        self.console.print(
            f"reference.py (size small), to be beaten:\n{_body(task.source('small'))}",
            markup=False,
            style="dim",
        )

    def action(self, text: str) -> None:
        said = text.split("\n\n")[0].replace("\n", " ")
        if said.strip() == "submit":
            said = "That is it."
        elif said.startswith(("```", "<<<", "model_new.py")):
            said = "(sends an edit)"
        self.console.print(f"\n[bold cyan]agent[/] {_escape(said)}")
        if self.console.is_terminal:
            self._waiting.start()
        else:
            self.console.print("judging…", style="dim")
        self._asked = time.perf_counter()

    def turn(self, info: dict[str, Any]) -> None:
        from kernelgym.cli.verdict_view import one_line

        took = time.perf_counter() - self._asked
        self.stop()
        if info["edit_error"]:
            self.console.print(f"[red]not applied[/] {_escape(info['edit_error'])}")
            return
        self._show_diff(info)
        verdict = info["verdict"]
        if verdict is None or not info["judged"]:
            return
        self.console.print(one_line(verdict, f"judged in {took:.1f} s  "))
        for problem in verdict.diagnostics[:2]:
            for line in problem.excerpt.splitlines():
                self.console.print(f"      {line}", markup=False, style="red")

    def _show_diff(self, info: dict[str, Any]) -> None:
        workspace = info["workspace"]
        if not info["changed"]:
            return
        lines = workspace.parent.diff(workspace).splitlines()[2:]
        shown = lines[:_DIFF_LINES]
        if len(lines) > len(shown):
            shown.append(f"… {len(lines) - len(shown)} more lines")
        for line in shown:
            self.console.print(printable(line), markup=False, style=_DIFF_STYLES.get(line[:1], ""))


def _play(
    task_id: str, agent: Agent, max_turns: int, out: Path, judge: Any, console: Console
) -> TaskResult:
    from kernelgym import runs, tasks

    name = type(agent).__name__
    show = _Show(console, "a scripted agent" if isinstance(agent, ScriptedAgent) else name)
    task = tasks.get(task_id)
    plan = runs.RunPlan(name, (task.id,), judge.config, max_turns, versions=runs.versions())
    try:
        return runs.play(
            plan,
            [task],
            agent,
            out / runs.folder_name(task),
            judge=judge,
            on_start=show.start,
            on_action=show.action,
            on_turn=show.turn,
        )[0]
    finally:
        show.stop()


def _search() -> Agent:
    from kernelgym import agents

    agent: Agent = agents.get("search")
    return agent


def _warm_up(console: Console) -> None:
    """Builds the emulator, once for each machine, before anybody waits for a verdict."""
    from kernelgym.cli.console import Progress
    from kernelgym.toolchain.cache import default_cache_root
    from kernelgym.toolchain.emulated import Emulated

    start = time.perf_counter()
    with Progress(
        "building the emulator, once for this machine: some ten seconds, more on a slow one…"
    ):
        Emulated(default_cache_root() / "kits").kit()
    took = time.perf_counter() - start
    if took > 1:
        console.print(f"The emulator was built in {took:.1f} s; this happens once.", style="dim")


def _make_room(out: Path) -> None:
    if out.exists():
        runs = [entry / "run.json" for entry in out.iterdir()] if out.is_dir() else []
        if not out.is_dir() or not all(path.exists() for path in runs):
            raise UsageError(f"--out: expected a new folder or that of a demonstration, got {out}")
        shutil.rmtree(out)
    with writing(out):
        out.mkdir(parents=True)


def _farewell(console: Console, pages: list[Path], took: float) -> None:
    console.print()
    console.print("[bold]── Where to look next[/]")
    console.print(f"Played in {took:.0f} s. What happened, with diffs and plots:", markup=False)
    for page in pages:
        console.print(f"  {page}", markup=False)
    scripts = Path(sys.prefix) / "bin"
    if shutil.which("kernelgym") is None and (scripts / "activate").exists():
        command = f". {shlex.quote(os.path.relpath(scripts / 'activate'))}"
        console.print(f"first, once a shell, let it find the commands below:\n  [bold]{command}[/]")
    for what, command in (
        ("the 250 tasks", "kernelgym tasks"),
        ("try one yourself, or with a coding agent", "kernelgym workspace L1/19 my-relu"),
        ("let an agent play", "kernelgym run --agent search --task L1/1,L1/40 --out runs/first"),
        ("what a GPU or nvcc would add on this machine", "kernelgym doctor"),
        ("the environment for agents of your own", "README.md, docs/environment.md"),
    ):
        console.print(f"{what}:\n  [bold]{command}[/]")


def _body(source: str) -> str:
    """The program without its head and blank lines: what matters in a few lines."""
    lines = source.split("class Model", 1)
    kept = "class Model" + lines[1] if len(lines) == 2 else source
    kept = kept.split("def get_inputs")[0]
    return "\n".join(f"  {line}" for line in kept.splitlines() if line.strip())


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(printable(text))
