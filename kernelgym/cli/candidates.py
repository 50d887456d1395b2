"""`kernelgym evaluate`, `watch` and `workspace`: judging what somebody writes."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelgym.cli.catalogue import find_task
from kernelgym.cli.console import Progress, output, plain
from kernelgym.cli.exits import exit_of, finish
from kernelgym.cli.options import judging
from kernelgym.config import JudgeConfig
from kernelgym.errors import EnvironmentFault, UsageError

if TYPE_CHECKING:
    from kernelgym.judge.verdict import Diagnostic, Verdict
    from kernelgym.tasks import Task
    from kernelgym.workspace_folder import Candidate

__all__ = ["evaluate", "watch", "workspace"]

_FORMATS = ("text", "gcc", "sarif")

_TaskName = Annotated[
    str, typer.Argument(metavar="TASK", help="Task id such as L1/19, or a file in its form.")
]
_Files = Annotated[
    list[str],
    typer.Argument(metavar="FILE...", help="A .py file (and files beside it), or a folder."),
]


@judging
def evaluate(
    task: _TaskName,
    files: _Files,
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="The verdict as one JSON object.")
    ] = False,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar=f"[{'|'.join(_FORMATS)}]",
            help="text for people; gcc or sarif: the problems only, for editors.",
        ),
    ] = "text",
    server: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Have a `kernelgym serve` judge it, in its own way."),
    ] = None,
    token_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Holds the token for --server.")
    ] = None,
    config: JudgeConfig,
) -> None:
    """Judge a candidate: compile, run, check, time. Exit code 0 only for a correct one."""
    from kernelgym.workspace_folder import read_candidate

    if form not in _FORMATS:
        raise UsageError(f"--format: expected one of {', '.join(_FORMATS)}, got {form!r}")
    found = find_task(task)
    candidate = read_candidate(files)
    with Progress(f"Judging {found.id}…"):
        if server is None:
            verdict = _judge(found, candidate, config)
        else:
            verdict = _ask(server, token_file, found, candidate, config)
    if as_json:
        from kernelgym.judge.verdict import to_json

        plain(to_json(verdict))
    elif form == "text":
        from kernelgym.cli.verdict_view import panel

        console = output()
        least = _least_bytes(found, verdict)
        console.print(panel(verdict, least, framed=console.is_terminal))
    else:
        _print_problems(form, verdict, candidate)
    finish(exit_of(verdict.outcome))


@judging
def watch(task: _TaskName, files: _Files, *, config: JudgeConfig) -> None:
    """Judge a candidate now and after each save; Ctrl-C ends it."""
    from kernelgym.cli.verdict_view import one_line, panel
    from kernelgym.judge.judge import Judge
    from kernelgym.watching import saves

    found = find_task(task)
    console = output()
    with Judge(config) as judge:
        console.print(f"Watching {', '.join(files)} for {found.id}; Ctrl-C ends it.", markup=False)
        try:
            for candidate in saves(files):
                now = time.strftime("%H:%M:%S  ")
                if isinstance(candidate, UsageError):
                    console.print(f"{now}{candidate}", markup=False)
                    continue
                try:
                    with Progress("Judging…"):
                        verdict = judge.evaluate(found, candidate.workspace)
                except EnvironmentFault as fault:
                    console.print(
                        f"{now}no verdict, not the candidate's fault: {fault}", markup=False
                    )
                    continue
                console.print(one_line(verdict, now))
                least = _least_bytes(found, verdict)
                console.print(panel(verdict, least, framed=console.is_terminal))
        except KeyboardInterrupt:
            console.print("Stopped.")


def workspace(
    task: _TaskName,
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A new or an empty folder.")],
    size: Annotated[str, typer.Option(help="Which shapes: small, medium or full.")] = "small",
    server: Annotated[
        str,
        typer.Option(metavar="URL", help="Let ./judge ask a `kernelgym serve`, of that size."),
    ] = "",
) -> None:
    """Make a folder for a person or a coding agent: files, rules, hints and a ./judge command."""
    from kernelgym.workspace_folder import create

    found = find_task(task)
    root = create(found, folder, size, server)
    plain(f"{root}: edit model_new.py, then run {Path(root) / 'judge'}; rules are in AGENTS.md")


def _judge(task: Task, candidate: Candidate, config: JudgeConfig) -> Verdict:
    from kernelgym.judge.judge import Judge

    with Judge(config) as judge:
        return judge.evaluate(task, candidate.workspace)


def _ask(
    server: str, token_file: str | None, task: Task, candidate: Candidate, config: JudgeConfig
) -> Verdict:
    """Has a service judge; what the caller has set differently from the defaults is asked for."""
    try:
        from kernelgym.client import Client
    except ImportError as error:
        raise UsageError(f"--server: expected pip install 'kernelgym[serve]': {error}") from error
    try:
        token = Path(token_file).read_text("utf-8").strip() if token_file else None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--token-file: expected a readable file: {error}") from error
    default = dataclasses.asdict(JudgeConfig())
    asked = {k: v for k, v in dataclasses.asdict(config).items() if v != default[k]}
    with Client(server, token=token, agent="kernelgym evaluate", patience=10.0) as client:
        return client.evaluate(task, candidate.workspace, config=asked)


def _least_bytes(task: Task, verdict: Verdict) -> int | None:
    """The task's compulsory traffic, where it is going to be compared with what was counted."""
    return task.facts(verdict.provenance.size).min_bytes if verdict.counters else None


def _print_problems(form: str, verdict: Verdict, candidate: Candidate) -> None:
    from kernelgym.toolchain.diagnostic_formats import to_gcc, to_sarif

    problems = _on_disk(verdict, candidate)
    if form == "sarif":
        plain(json.dumps(_explained(to_sarif(problems)), indent=1))
    elif problems:
        plain(to_gcc(problems))


def _explained(log: dict[str, Any]) -> dict[str, Any]:
    """Gives the log's rules that are reasons of verdicts their meaning and remedy, as help."""
    from kernelgym.judge.reasons import REASONS

    for rule in log["runs"][0]["tool"]["driver"]["rules"]:
        reason = REASONS.get(rule["id"])
        if reason is not None:
            rule["fullDescription"] = {"text": reason.meaning}
            rule["help"] = {"text": reason.remedy}
    return log


def _on_disk(verdict: Verdict, candidate: Candidate) -> list[Diagnostic]:
    """The verdict's problems, at the paths that the caller gave.

    One that is not correct always has an error: an editor must not show a wrong kernel as clean.
    """
    from kernelgym.judge.verdict import Diagnostic
    from kernelgym.workspace import MAIN_FILE

    warnings = verdict.build.warnings if verdict.build is not None else ()
    problems = [*verdict.diagnostics, *warnings]
    if not verdict.correct and not any(problem.severity == "error" for problem in problems):
        text = " ".join(verdict.message.split()) or str(verdict.outcome)
        problems.insert(0, Diagnostic(MAIN_FILE, 1, 1, "error", text, code=verdict.reason))
    return [
        dataclasses.replace(problem, file=str(candidate.places.get(problem.file, problem.file)))
        for problem in problems
    ]
