"""The style sheet, the script and the icon of the site."""

from __future__ import annotations

import importlib.resources

from kernelgym.report.rendering import read_style

__all__ = ["static_files"]


def static_files() -> dict[str, str | bytes]:
    """The files that all pages share, by path."""
    folder = importlib.resources.files("kernelgym.leaderboard.site") / "static"
    files: dict[str, str | bytes] = {
        f"static/{item.name}": item.read_bytes() for item in folder.iterdir() if item.is_file()
    }
    files["static/site.css"] = read_style("tokens.css") + (folder / "site.css").read_text("utf-8")
    return files
