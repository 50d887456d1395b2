"""An agent that is any command-line coding agent, working in a folder as a person would.

For each task the command is run in a fresh folder as `kernelgym workspace` makes them. Its `./judge`
asks a judge's service (`kernelgym serve`) that gives out as many verdicts as the budget has, less
one: the last is for what the folder holds in the end, which is the agent's only action. Time and
tokens are watched, and at a limit the command is ended with all that it started.

The command runs with the caller's rights, and nothing here confines it: run it in a container.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import select
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from kernelgym import tasks
from kernelgym.agents.supervision import end_group, supervise
from kernelgym.budget import Budget, Usage
from kernelgym.client import Client
from kernelgym.config import JudgeConfig
from kernelgym.edits import Submit, WriteFile, render
from kernelgym.errors import AgentError, EnvironmentFault, UsageError
from kernelgym.runs import folder_name
from kernelgym.workspace import Workspace
from kernelgym.workspace_folder import create, read_candidate

__all__ = ["PROMPT", "Arguments", "CodingCLI"]

PROMPT = """\
Read AGENTS.md, which says what the task is and what is allowed. Make model_new.py correct, then as
fast as you can. `./judge` gives you {verdicts} verdicts in all, and you have {minutes} minutes; what
this folder holds when you end, or when your time is over, is your answer.
"""

_SERVICE = """
import sys
import msgspec
from kernelgym.config import JudgeConfig
from kernelgym.service.access import Access
from kernelgym.service.server import serve

config = msgspec.json.decode(sys.argv[1], type=JudgeConfig)
serve(config, Access(budget=int(sys.argv[2])), sys.argv[3], port=0,
      started=lambda url: print(url, flush=True))
"""
_SERVICE_SECONDS = 120.0


@dataclasses.dataclass(frozen=True)
class Arguments:
    """What `CodingCLI` can be told.

    Attributes:
        command: The command line, as a shell would split it, without one running it. `{prompt}` in
            it stands for the prompt, which is otherwise written to standard input, `{folder}` for
            the folder.
        prompt: What it is told; `{verdicts}` and `{minutes}` are filled in.
        folder: Where task folders, and what happened, are kept.
        verdicts: Verdicts of a task, where the episode has no budget of them.
        seconds: Seconds of a task, where the episode has no budget of them.
        tokens: Most tokens of a task, where the episode has no budget of them; None: no limit.
        tokens_pattern: Finds token counts in what the command prints, each adding to those before;
            groups `prompt` and `completion`.
    """

    command: str = ""
    prompt: str = PROMPT
    folder: str = "coding_cli"
    verdicts: int = 10
    seconds: float = 1800.0
    tokens: int | None = None
    tokens_pattern: str = (
        r'"(?:input|prompt)_tokens":\s*(?P<prompt>\d+)'
        r'|"(?:output|completion)_tokens":\s*(?P<completion>\d+)'
    )

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        try:
            words = shlex.split(self.command)
            re.compile(self.tokens_pattern)
        except (ValueError, re.error) as error:
            raise UsageError(
                f"command, tokens_pattern: expected to be readable: {error}"
            ) from error
        if not words:
            raise UsageError("command: expected a command line, got none")
        if self.verdicts < 1 or not self.seconds > 0:
            raise UsageError("verdicts, seconds: expected more than 0")


class CodingCLI:
    """Lets a command work in a folder, then hands in what it left there.

    Each task's folder holds `work` (the agent's), `output.txt` (what it printed), `prompt.txt`,
    `verdicts.jsonl` (the service's journal: every verdict that it was given) and `ended.json`.

    Args:
        arguments: All arguments as one record.
        **fields: Single fields of `Arguments`, over those of `arguments`.

    Attributes:
        usage: Tokens as the command tells of them, and verdicts that it was given by the service.

    Raises:
        UsageError: An argument is not accepted.
    """

    def __init__(self, arguments: Arguments | None = None, **fields: Any) -> None:
        if arguments is None:
            self.arguments = Arguments(**fields)
        else:
            self.arguments = dataclasses.replace(arguments, **fields)
        self.usage = Usage()

    def __call__(self, observation: Any, info: dict[str, Any]) -> str:
        """All files as the command left them, and `submit`.

        Raises:
            AgentError: The command cannot be started, or the task is none of the catalogue's.
            EnvironmentFault: The service does not start.
        """
        if info["turn"]:
            return render(Submit())  # what it handed in before was not accepted
        budget: Budget = info.get("budget") or Budget()
        config: JudgeConfig = info.get("config") or JudgeConfig()
        try:
            task = tasks.get(info["task_id"])
        except UsageError as error:
            raise AgentError(f"expected a task of the catalogue: {error}") from error
        seconds = budget.seconds or self.arguments.seconds
        verdicts = (budget.verdicts or self.arguments.verdicts) - 1
        root = self._fresh_folder(folder_name(task))
        work = root / "work"
        prompt = self.arguments.prompt.replace("{verdicts}", str(verdicts))
        prompt = prompt.replace("{minutes}", f"{seconds / 60:g}")
        (root / "prompt.txt").write_text(prompt, encoding="utf-8")
        with _service(config, verdicts, root) as url:
            create(task, work, _size(config), url)
            if not url:
                (work / "judge").unlink()
            ended = supervise(
                self._command(prompt, work),
                work,
                root / "output.txt",
                prompt="" if "{prompt}" in self.arguments.command else prompt,
                seconds=seconds,
                tokens=budget.tokens or self.arguments.tokens,
                pattern=self.arguments.tokens_pattern,
            )
            had = _verdicts(url)
        (root / "ended.json").write_bytes(msgspec.json.encode(ended) + b"\n")
        self.usage += ended.usage + Usage(verdicts=had)
        return _handed_in(work, info["workspace"])

    def _command(self, prompt: str, work: Path) -> list[str]:
        words = shlex.split(self.arguments.command)
        return [w.replace("{folder}", str(work)).replace("{prompt}", prompt) for w in words]

    def _fresh_folder(self, name: str) -> Path:
        root = Path(self.arguments.folder).absolute()
        number = 1
        while True:
            path = root / (name if number == 1 else f"{name}-{number}")
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                number += 1
            except OSError as error:
                raise UsageError(f"folder: expected one to write in: {error}") from error
            else:
                return path


@contextlib.contextmanager
def _service(config: JudgeConfig, verdicts: int, root: Path) -> Iterator[str]:
    """The address of a service that gives so many verdicts; `""` where that is none."""
    if verdicts == 0:
        yield ""
        return
    told = [msgspec.json.encode(config).decode(), str(verdicts), str(root / "verdicts.jsonl")]
    with (root / "service.txt").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", _SERVICE, *told],
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    assert process.stdout is not None
    try:
        ready, _, _ = select.select([process.stdout], [], [], _SERVICE_SECONDS)
        url = process.stdout.readline().decode().strip() if ready else ""
        if not url:
            said = (root / "service.txt").read_text("utf-8", "replace").strip()[-500:]
            raise EnvironmentFault(f"expected the judge's service to start, it said: {said}")
        yield url
    finally:
        end_group(process)
        process.stdout.close()


def _verdicts(url: str) -> int:
    if not url:
        return 0
    with Client(url, patience=10.0) as client:
        return client.queue().verdicts


def _size(config: JudgeConfig) -> str:
    if config.size != "auto":
        return config.size
    from kernelgym.judging import LazyJudge

    with contextlib.closing(LazyJudge(config)) as judge:
        return judge.size


def _handed_in(work: Path, before: Workspace) -> str:
    """The folder's files as edits. What cannot be handed in leaves the start files as they are."""
    try:
        after = read_candidate([work]).workspace
        edits = [
            WriteFile(path, text)
            for path, text in after.files.items()
            if before.files.get(path) != text
        ]
        return render(*edits, Submit())
    except UsageError:
        return render(Submit())
