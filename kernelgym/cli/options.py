"""The judge's options, declared once from `JudgeConfig` for every command that judges."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, overload

import typer

from kernelgym import config as settings
from kernelgym.config import JudgeConfig

__all__ = ["judging"]

_PANEL = "How candidates are judged"
_DEFAULTS = JudgeConfig()


_Command = Callable[..., None]


@overload
def judging(command: _Command) -> _Command: ...
@overload
def judging(**defaults: Any) -> Callable[[_Command], _Command]: ...
def judging(command: _Command | None = None, **defaults: Any) -> Any:
    """Replaces a command's parameter `config` by one option for each field of `JudgeConfig`.

    Args:
        command: The command.
        **defaults: Fields whose default is another one for this command.
    """
    if command is None:
        return functools.partial(judging, **defaults)
    inner = command

    @functools.wraps(inner)
    def run(**arguments: Any) -> None:
        fields = {name: arguments.pop(name) for name in _NAMES}
        fields["baselines"] = tuple(fields["baselines"])
        fields["memory_limit"] = int(fields["memory_limit"] * 2**30)
        inner(config=JudgeConfig(**fields), **arguments)

    signature = inspect.signature(inner, eval_str=True)
    own = [value for name, value in signature.parameters.items() if name != "config"]
    options = [o.replace(default=defaults.get(o.name, o.default)) for o in _OPTIONS]
    run.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*own, *options]
    )
    return run


def _option(
    name: str, annotation: Any, help_text: str, default: Any = None, **kwargs: Any
) -> inspect.Parameter:
    flag = "--" + name.replace("_", "-")
    if annotation is bool:
        flag += f"/--no-{name.replace('_', '-')}"
    option = typer.Option(flag, help=help_text, rich_help_panel=_PANEL, **kwargs)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=getattr(_DEFAULTS, name) if default is None else default,
        annotation=Annotated[annotation, option],
    )


def _choice(name: str, help_text: str, accepted: tuple[str, ...]) -> inspect.Parameter:
    return _option(
        name, str, help_text, metavar=f"[{'|'.join(accepted)}]", autocompletion=lambda: accepted
    )


_OPTIONS = [
    _option("device", str, "'auto', 'cpu' (the emulator), 'cuda' or 'cuda:N'."),
    _choice("size", "Shapes; 'auto' is small on the emulator, full on a GPU.", settings.SIZES),
    _choice("protocol", "What counts as correct.", settings.PROTOCOLS),
    _choice("ruleset", "What a candidate may call.", settings.RULESETS),
    _choice("precision", "Which arithmetic counts as honest.", settings.PRECISIONS),
    _option(
        "baselines",
        list[str],
        "What times are compared with: eager, compile. May be repeated.",
        default=list(_DEFAULTS.baselines),
    ),
    _option("counters", bool, "Count memory traffic, bank conflicts and the like."),
    _option("draws", int, "Input draws in the correctness check."),
    _option("seed", int | None, "Seeds everything drawn; by default a fresh secret salt."),
    _option("build_timeout", float, "Limit of one build, in seconds."),
    _option("run_timeout", float, "Limit of the candidate's process without builds, in seconds."),
    _option(
        "memory_limit",
        float,
        "Memory of the candidate's process beyond its inputs, in GiB.",
        default=_DEFAULTS.memory_limit / 2**30,
    ),
    _option("architecture", str, "GPU architecture that nvcc checks against."),
    _option("nvcc_check", bool, "On the emulator: let nvcc compile the source too, if present."),
    _choice("protection", "How the candidate is confined.", settings.PROTECTIONS),
    _option("live_baselines", bool, "On a GPU: measure torch.compile, rather than look it up."),
    _option("energy", bool, "Measure joules per call, on a GPU; some fifteen seconds more."),
]
_NAMES = tuple(option.name for option in _OPTIONS)
