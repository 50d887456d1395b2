"""`kernelgym leaderboard`: taking results to the board, and holding the board to them."""

from __future__ import annotations

import datetime
import platform
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelgym.cli import leaderboard_site
from kernelgym.cli.console import errors, plain, problem
from kernelgym.cli.exits import Exit, finish, guarded
from kernelgym.cli.options import judging
from kernelgym.config import JudgeConfig
from kernelgym.errors import UsageError

if TYPE_CHECKING:
    from kernelgym.leaderboard.entry import Entry

__all__ = ["add_to", "check", "submit", "verify"]

_GROUP_HELP = "Submit results to the leaderboard, verify entries, build its pages."
_DEFAULT_ENTRIES = Path("leaderboard/entries")

_Entries = Annotated[Path, typer.Option(help="The folder of entries, of a checkout.")]
_Cache = Annotated[
    Path | None, typer.Option(help="Where scores are kept; the user's cache by default.")
]


def add_to(app: typer.Typer) -> None:
    """Adds the group `leaderboard`."""
    group = typer.Typer(no_args_is_help=True, help=_GROUP_HELP)
    for command in (submit, verify, check, leaderboard_site.build, leaderboard_site.serve):
        group.command()(guarded(command))
    app.add_typer(group, name="leaderboard")


@judging
def submit(
    results: Annotated[
        Path,
        typer.Argument(
            metavar="RUN_DIR",
            help="A run; or KernelBench generations, a .json file of task to source, workspaces.",
        ),
    ],
    *,
    name: Annotated[str, typer.Option(help="What the table shows.")],
    authors: Annotated[str, typer.Option(help="Who submits it; comma-separated.")],
    agent: Annotated[str, typer.Option(help="The agent; a run says it itself.")] = "",
    model: Annotated[str, typer.Option(help="The language model behind it.")] = "",
    model_date: Annotated[str, typer.Option(help="The model's date, YYYY-MM-DD.")] = "",
    harness: Annotated[str, typer.Option(help="What ran the agent, with its version.")] = "",
    licence: Annotated[str, typer.Option(help="Of the solutions, such as MIT.")] = "",
    link: Annotated[list[str] | None, typer.Option(help="Paper, code, logs; repeatable.")] = None,
    verdicts_per_task: Annotated[
        int | None, typer.Option(help="Verdicts taken for any one task; a run's are counted.")
    ] = None,
    tokens: Annotated[int | None, typer.Option(help="Tokens read and written.")] = None,
    money: Annotated[float | None, typer.Option(help="What it cost, in US dollars.")] = None,
    tasks: Annotated[
        str | None, typer.Option(help="kernelbench, level1, level2 or level3; else from results.")
    ] = None,
    sample: Annotated[int, typer.Option(help="Tasks of a run to judge again here.", min=0)] = 5,
    full: Annotated[bool, typer.Option("--full", help="Judge all of a run again.")] = False,
    entries: _Entries = _DEFAULT_ENTRIES,
    cache: _Cache = None,
    config: JudgeConfig,
) -> None:
    """Check results, judge them (a sample, if they come with verdicts), and write an entry.

    A run brings its own rules; the judge's options are for results without verdicts.
    """
    from kernelgym.judging import LazyJudge
    from kernelgym.leaderboard.submission import Claim
    from kernelgym.leaderboard.submission import submit as run

    claim = Claim(
        name=name,
        authors=tuple(part.strip() for part in authors.split(",") if part.strip()),
        agent=agent,
        model=model,
        model_date=_date(model_date),
        harness=harness,
        licence=licence,
        links=tuple(link or ()),
        verdicts_per_task=verdicts_per_task,
        tokens=tokens,
        money_usd=money,
        task_set=tasks,
    )
    entry = run(
        results,
        claim,
        entries,
        config=config,
        make_judge=LazyJudge,
        sample=None if full else sample,
        cache=cache,
        progress=_say("judging"),
    )
    _say_what_next(entry)


def verify(
    entry: Annotated[str, typer.Argument(help="Folder or name of an entry.")],
    *,
    by: Annotated[str, typer.Option(help="Who vouches for the replay.")],
    where: Annotated[str, typer.Option(help="On which machine; its name by default.")] = "",
    device: Annotated[str, typer.Option(help="'auto', 'cpu', 'cuda' or 'cuda:N'.")] = "auto",
    entries: _Entries = _DEFAULT_ENTRIES,
    cache: _Cache = None,
) -> None:
    """Judge every solution of an entry again, under fresh secrets; stamp it if all agree.

    Exit code 1 when something differs; it is listed, and nothing is stamped.
    """
    from kernelgym.judging import LazyJudge
    from kernelgym.leaderboard.loading import find_entry
    from kernelgym.leaderboard.summaries import summaries
    from kernelgym.leaderboard.verification import verify as run

    folder = find_entry(entry, entries)
    # The entry in question may be broken; verify says how. Its neighbours must not be.
    others = [
        summary.fingerprints
        for summary in (summaries(entries, cache, without=folder) if entries.is_dir() else ())
    ]
    found = run(
        folder,
        by=by,
        where=where or platform.node(),
        device=device,
        make_judge=LazyJudge,
        others=tuple(others),
        progress=_say("replaying"),
    )
    for line in found.differences:
        plain(line)
    if found.stamp is None:
        problem(f"{found.entry.id}: not verified, {len(found.differences)} differences")
        finish(Exit.NO)
    plain(f"{found.entry.id}: {found.entry.status}, {found.stamp.tasks} solutions agree")
    if found.stamp.own:
        problem("This is the submitter's own replay: somebody else's makes an entry verified.")


def check(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="ENTRY...", help="By default all of them.")
    ] = None,
    entries: _Entries = _DEFAULT_ENTRIES,
) -> None:
    """Check entries without judging anything: form, hashes, rules, copies. Exit code 1 for a no."""
    from kernelgym.leaderboard.checks import check_all
    from kernelgym.leaderboard.loading import entry_folders, find_entry

    if not entries.is_dir():
        raise UsageError(f"--entries: expected the folder of entries, got {entries}")
    chosen = [find_entry(name, entries) for name in names or ()] or entry_folders(entries)
    found = check_all(chosen, entries)
    for line in found:
        plain(str(line))
    of, problems = _count(len(chosen), "entry", "entries"), _count(len(found), "problem")
    plain(f"{of}, {problems}")
    finish(Exit.NO if found else Exit.CORRECT)


def _count(number: int, one: str, more: str = "") -> str:
    return f"{number} {one if number == 1 else more or one + 's'}"


def _date(text: str) -> datetime.date | None:
    try:
        return datetime.date.fromisoformat(text) if text else None
    except ValueError as error:
        raise UsageError(f"--model-date: expected YYYY-MM-DD, got {text!r}") from error


def _say(what: str) -> Callable[[int, int], None]:
    console = errors()

    def progress(done: int, total: int) -> None:
        console.print(f"{what}: {done} of {total}", markup=False)

    return progress


def _say_what_next(entry: Entry) -> None:
    judged = f"{len(entry.results)} of {len(entry.board.tasks)} tasks have a verdict"
    plain(f"{entry.folder}: an entry on the board {entry.board.title}; {judged}")
    for result in entry.rejected:
        plain(f"rejected, and shown as such: {result.task} ({result.verdict.reason})")
    if entry.board.modelled:
        plain(
            "Its times are modelled, as no GPU judged it: it competes on the emulator's board alone."
        )
    if entry.board.budget.limit is None:
        plain("It competes under an open budget: --verdicts-per-task says what it took.")
    branch = f"entry-{entry.folder.name}"
    plain(
        "To open the pull request, from your fork:\n"
        f"  git switch -c {branch}\n"
        f"  git add {entry.folder}\n"
        f'  git commit -m "Add {entry.folder.name} to the leaderboard"\n'
        f"  git push -u origin {branch}\n"
        f"  gh pr create --title 'Leaderboard: {entry.folder.name}' --body ''\n"
        "It is listed as unverified until somebody else has replayed it."
    )
