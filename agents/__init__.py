"""Agents: one file each; anything that maps an observation to an edit text can play.

`get` finds one by name: a bundled one, or anybody's as `"module:attribute"`. Nothing else needs to
be imported or registered.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import pathlib
import sys
from typing import TYPE_CHECKING, Any

from kernelgym.errors import UsageError

if TYPE_CHECKING:
    from kernelgym.runner import Agent

__all__ = ["NAMES", "get"]

_HOMES = {
    "coding_cli": "kernelgym.agents.coding_cli:CodingCLI",
    "lm_policy": "kernelgym.agents.lm_policy:LMPolicy",
    "openai_chat": "kernelgym.agents.openai_chat:OpenAIChat",
    "random_edits": "kernelgym.agents.random_edits:RandomEdits",
    "repair": "kernelgym.agents.repair:Repair",
    "sb3_ppo": "kernelgym.agents.sb3_ppo:SB3PPO",
    "search": "kernelgym.agents.search:Search",
    "small_policy": "kernelgym.agents.small_policy:SmallPolicy",
}

# What some of them need besides.
_EXTRAS = {"coding_cli": "serve", "lm_policy": "llm", "openai_chat": "chat", "sb3_ppo": "sb3"}

NAMES = tuple(_HOMES)
"""The bundled agents."""


def get(name: str, **arguments: Any) -> Agent:
    """An agent, ready to play.

    Args:
        name: A bundled agent (`"search"`), `"module:attribute"` (also of a module in the current
            folder), or `"path/to/file.py:attribute"`.
        **arguments: For its class; an attribute that is no class is the agent itself and takes
            none.

    Raises:
        UsageError: There is no such agent, or it does not take these arguments.

    Example:
        >>> get("random_edits", seed=3)  # doctest: +ELLIPSIS
        <kernelgym.agents.random_edits.RandomEdits object at ...>
    """
    home = _HOMES.get(name, name)
    module_name, colon, attribute = home.rpartition(":")
    if not colon or not module_name or not attribute:
        close = difflib.get_close_matches(name, NAMES, n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise UsageError(
            f"agent: expected one of {', '.join(NAMES)} or 'module:attribute', got {name!r}{hint}"
        )
    module = _module(module_name, _EXTRAS.get(name, ""))
    if not hasattr(module, attribute):
        close = difflib.get_close_matches(attribute, dir(module), n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise UsageError(f"agent: {module_name} has no attribute {attribute!r}{hint}")
    found = getattr(module, attribute)
    if isinstance(found, type):
        try:
            found = found(**arguments)
        except TypeError as error:
            raise UsageError(f"agent {name!r}: {error}") from error
    elif arguments:
        raise UsageError(f"agent {name!r}: expected no arguments, got {', '.join(arguments)}")
    if not callable(found):
        kind = type(found).__name__
        raise UsageError(f"agent {name!r}: expected something to call, got a {kind}")
    agent: Agent = found
    return agent


def _module(name: str, extra: str = "") -> Any:
    """Imports a module by its name, or by the path of its file."""
    if not name.endswith(".py"):
        # A console script's path has its own folder instead of the current one.
        if not {"", str(pathlib.Path.cwd())} & set(sys.path):
            sys.path.insert(0, str(pathlib.Path.cwd()))
        try:
            return importlib.import_module(name)
        except ImportError as error:
            hint = f"; expected pip install 'kernelgym[{extra}]'" if extra else ""
            raise UsageError(f"agent: cannot import {name!r}: {error}{hint}") from error
    path = pathlib.Path(name)
    if not path.is_file():
        raise UsageError(f"agent: expected a Python file, got {name!r}")
    unique = f"kernelgym_agent_{path.stem}"
    spec = importlib.util.spec_from_file_location(unique, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"agent: expected a Python file, got {name!r}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[unique] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module
