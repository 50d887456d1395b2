"""Showing a site on this machine."""

from __future__ import annotations

import functools
import http.server
from pathlib import Path

from kernelgym.errors import UsageError
from kernelgym.leaderboard.site.output import STATE_FOLDER

__all__ = ["serve_site"]


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Sends files of a site, and no listing of a folder."""

    def send_head(self):  # type: ignore[no-untyped-def]
        """Refuses what is not part of the site; otherwise as in the standard library."""
        asked = Path(self.translate_path(self.path))
        if STATE_FOLDER in asked.relative_to(self.directory).parts:
            self.send_error(404)
            return None
        return super().send_head()

    def list_directory(self, path: object) -> None:
        """There is nothing to see in a folder without a page."""
        self.send_error(404)

    def end_headers(self) -> None:
        """Adds what a page cannot say of itself."""
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


def serve_site(folder: Path, port: int = 8000) -> http.server.ThreadingHTTPServer:
    """A server on the loopback interface; `serve_forever` runs it, `server_close` ends it.

    Args:
        folder: The site, as `build_site` wrote it.
        port: Where to listen; 0 for any free port.

    Raises:
        UsageError: There is no site in the folder, or the port is taken.
    """
    if not (folder / "index.html").is_file():
        raise UsageError(f"expected the folder of a site, got {folder}: build it first")
    handler = functools.partial(_Handler, directory=str(folder))
    try:
        return http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except (OSError, OverflowError) as error:
        raise UsageError(f"--port: expected a free port, got {port}: {error}") from error
