"""`kernelgym compare`: one's own kernel against one's own reference, and what to do next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from kernelgym.cli.console import Progress, output, plain
from kernelgym.cli.exits import exit_of, finish
from kernelgym.cli.options import judging
from kernelgym.config import JudgeConfig

__all__ = ["compare"]


@judging(ruleset="kernelbench")
def compare(
    reference: Annotated[
        str,
        typer.Argument(
            metavar="REF.py", help="KernelBench's form, or a plain function of tensors."
        ),
    ],
    kernel: Annotated[
        str,
        typer.Argument(
            metavar="KERNEL", help="A .py with ModelNew or a function, or a .cu with one in C++."
        ),
    ],
    *,
    shapes: Annotated[
        str, typer.Option(help="Inputs' shapes: 1024x1024,1024 or x=64x512:float16.")
    ] = "",
    function: Annotated[
        str, typer.Option(help="Which function of KERNEL to call, where it has several.")
    ] = "",
    as_json: Annotated[
        bool, typer.Option("--json", help="Verdict and advice as one JSON object.")
    ] = False,
    config: JudgeConfig,
) -> None:
    """Compare your kernel with your reference: right or not, how fast, what bounds it, what next."""
    from kernelgym.comparison import kernel_files, parse_shapes, reference_task

    task = reference_task(Path(reference), parse_shapes(shapes) if shapes else ())
    files = kernel_files(Path(kernel), task, function)
    from kernelgym.judge.advice import advise
    from kernelgym.judge.gpus import gpu_model
    from kernelgym.judge.judge import Judge
    from kernelgym.judge.physics import EMULATED_DEVICE
    from kernelgym.judge.verdict import to_json

    with Progress(f"Comparing {kernel} with {reference}…"), Judge(config) as judge:
        verdict = judge.evaluate(task, files)
    facts = task.facts(verdict.provenance.size)
    model = EMULATED_DEVICE if judge.device.type == "cpu" else gpu_model(verdict.provenance.device)
    advice = advise(verdict, flops=facts.flops, min_bytes=facts.min_bytes, model=model)
    if as_json:
        record = {"verdict": json.loads(to_json(verdict)), "advice": None}
        if advice is not None:
            record["advice"] = {
                "limit": advice.limit,
                "steps": [{"text": step.text, "gain": step.gain} for step in advice.steps],
                "modelled": advice.modelled,
            }
        plain(json.dumps(record))
    else:
        from kernelgym.cli.advice_view import advice_text
        from kernelgym.cli.verdict_view import panel

        console = output()
        least = facts.min_bytes if verdict.counters else None
        console.print(panel(verdict, least, framed=console.is_terminal))
        if advice is not None:
            console.print(advice_text(verdict, advice))
    finish(exit_of(verdict.outcome))
