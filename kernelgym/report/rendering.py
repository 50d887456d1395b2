"""How pages are rendered: Jinja with everything escaped, and the style sheets they share."""

from __future__ import annotations

import functools
import importlib.resources
from typing import TYPE_CHECKING

from kernelgym.feedback import format_bytes, format_seconds, printable

if TYPE_CHECKING:
    import jinja2

__all__ = ["page_environment", "read_style"]


def page_environment(package: str) -> jinja2.Environment:
    """An environment for the templates of a package, which escapes every text it is given.

    Args:
        package: The package whose folder `templates` holds them.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(package, "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Whatever a text from outside holds, control characters never reach the page.
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    environment.filters.update(bytes=format_bytes, seconds=format_seconds)
    return environment


@functools.cache
def read_style(name: str) -> str:
    """A style sheet of the reports: `tokens.css` holds the colours that all pages share."""
    folder = importlib.resources.files("kernelgym.report") / "templates"
    return (folder / name).read_text("utf-8")
