"""Runs KernelBench's own `eval_kernel_against_ref` on one candidate; imports nothing of kernelgym.

Reads a request as JSON from standard input: `checkout` (a KernelBench checkout's path), `reference`
and `candidate` (source texts), `trials`, `timing_trials`, `backend`, `build_dir`. Writes what came
of it as the last line of standard output, behind `MARK`.
"""

import contextlib
import importlib
import json
import os
import pathlib
import sys
import time

MARK = "upstream-says:"


def find_evaluation(checkout):
    """The module that has `eval_kernel_against_ref`, in any of the layouts that it has had.

    Raises:
        ImportError: The checkout has none.
    """
    errors = []
    for folder, name in (("src", "kernelbench.eval"), ("", "src.eval"), ("", "kernelbench.eval")):
        path = str(pathlib.Path(checkout) / folder)
        sys.path.insert(0, path)
        try:
            module = importlib.import_module(name)
            if hasattr(module, "eval_kernel_against_ref"):
                return module
            errors.append(f"{module.__file__} has no eval_kernel_against_ref")
        except ImportError as error:
            errors.append(f"{name} in {path}: {error}")
        sys.path.remove(path)
    raise ImportError(f"expected a KernelBench checkout, got {checkout}: {'; '.join(errors)}")


def evaluate(request):
    """What upstream says of one candidate; times are seconds."""
    evaluation = find_evaluation(request["checkout"])
    os.makedirs(request["build_dir"], exist_ok=True)
    started = time.perf_counter()
    result = evaluation.eval_kernel_against_ref(
        request["reference"],
        request["candidate"],
        num_correct_trials=request["trials"],
        num_perf_trials=request["timing_trials"],
        measure_performance=True,
        build_dir=request["build_dir"],
        backend=request["backend"],
    )
    seconds = time.perf_counter() - started
    if result is None:
        return {"verdict": "no result", "seconds": seconds, "why": "it asks to be run again"}
    metadata = {key: str(value)[:300] for key, value in dict(result.metadata).items()}
    if not result.compiled:
        verdict = "compile_error"
    else:
        verdict = "correct" if result.correctness else "incorrect"
    why = "; ".join(
        f"{key}: {metadata[key]}"
        for key in ("compilation_error", "runtime_error", "correctness_issue", "max_difference")
        if key in metadata
    )
    # It calls them microseconds in one place; its timers return milliseconds.
    times = {
        name: value / 1e3 if value is not None and value > 0 else None
        for name, value in (
            ("candidate", result.runtime),
            ("eager", getattr(result, "ref_runtime", None)),
        )
    }
    return {"verdict": verdict, "seconds": seconds, "why": why, **times, "metadata": metadata}


def main():
    """Reads the request, writes the answer; what upstream prints goes to standard error."""
    request = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):
        answer = evaluate(request)
    print(MARK + json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
