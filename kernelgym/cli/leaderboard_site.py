"""`kernelgym leaderboard build` and `serve`: the leaderboard's pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelgym.cli.console import Progress, plain, problem
from kernelgym.errors import UsageError

__all__ = ["build", "serve"]


def build(
    out: Annotated[Path, typer.Option(help="Folder of the site; one that exists is updated.")],
    entries: Annotated[Path, typer.Option(help="The folder of entries, of a checkout.")] = Path(
        "leaderboard/entries"
    ),
    jobs: Annotated[
        int | None, typer.Option(help="Processes to work with; by default one a core.", min=1)
    ] = None,
) -> None:
    """Write the leaderboard's pages: static, self-contained, for any web server."""
    from kernelgym.leaderboard.site import build_site

    if not entries.is_dir():
        raise UsageError(f"--entries: expected the folder of entries, got {entries}")
    with Progress("building the pages…"):
        built = build_site(entries, out, jobs=jobs)
    plain(
        f"{out / 'index.html'}: {built.entries} entries on {built.boards} boards; "
        f"{built.written} files written, {built.removed} removed"
    )


def serve(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A site that build has written.")],
    port: Annotated[int, typer.Option(help="0 for any free one.", min=0, max=65535)] = 8000,
) -> None:
    """Show the leaderboard's pages on this machine alone, until interrupted."""
    from kernelgym.leaderboard.site import serve_site

    with serve_site(folder, port) as server:
        plain(f"http://127.0.0.1:{server.server_address[1]}/")
        problem("serving on this machine alone; Ctrl-C ends it")
        server.serve_forever()
