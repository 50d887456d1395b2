"""Does the emulator count what a GPU's hardware counts? On the suite of kernels counted by hand.

    python -m benchmarks.count_agreement emulator --json emulator_counts.json
    python -m benchmarks.count_agreement gpu --json gpu_counts.json       # needs nvcc and ncu
    python -m benchmarks.count_agreement compare emulator_counts.json gpu_counts.json --json both.json

`gpu` compiles `tests/toolchain/counts_suite.cu` into a program, runs it once under `ncu`, and reads
its CSV. A metric that this GPU or this `ncu` does not have is left out and named. Compared are
requests, sectors and sectors per request of global loads and stores, and wavefronts and conflicts
of shared loads and stores; two figures agree within 10 %, or within 1 where the smaller is below 10.
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import dataclasses
import io
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence

from kernelgym.errors import ToolchainFault, UsageError
from kernelgym.toolchain.cuda import find_nvcc
from kernelgym.toolchain.emulated import Emulated
from kernelgym.toolchain.emulator import Variant
from kernelgym.toolchain.emulator_report import parse_report
from kernelgym.toolchain.emulator_runtime import EmulatorRuntime
from kernelgym.toolchain.rewrite import rewrite

__all__ = ["METRICS", "compare", "parse_ncu_csv"]

SUITE = pathlib.Path(__file__).parents[1] / "tests" / "toolchain" / "counts_suite.cu"
_RUN = re.compile(r'extern "C" void (run_\w+)\((int \w+)?\)')
# Our count -> ncu's metric, of which `.sum` is taken.
METRICS = {
    "global_load_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld",
    "global_load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld",
    "global_store_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st",
    "global_store_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st",
    "shared_load_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld",
    "shared_store_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st",
    "shared_load_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld",
    "shared_store_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st",
}
_MISSING = re.compile(
    r"(?:Failed to find|unknown|Unknown|invalid) metric[s]?:?\s*(.+)", re.IGNORECASE
)
_RELATIVE, _ABSOLUTE, _SMALL = 0.1, 1.0, 10.0


@dataclasses.dataclass(frozen=True)
class Launch:
    """The counts of one launch."""

    kernel: str
    counts: dict[str, float]


def functions() -> list[tuple[str, bool]]:
    """The suite's entry points, and whether each takes a stride."""
    return [(name, bool(argument)) for name, argument in _RUN.findall(SUITE.read_text())]


# --- the emulator ------------------------------------------------------------------------------


def emulator_counts() -> list[Launch]:
    """Counts of every launch of the suite on the emulator, in order.

    Raises:
        ToolchainFault: g++ is missing, or does not compile the suite.
    """
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        kit = Emulated(root / "kits").kit()
        source = root / "suite.cu"
        source.write_text(rewrite(SUITE.read_text()).text)
        library = root / "suite.so"
        for command in kit.compile_commands([source], library, Variant.CHECKED):
            finished = subprocess.run(command, capture_output=True, text=True, check=False)
            if finished.returncode:
                raise ToolchainFault(f"the suite does not compile: {finished.stderr[-400:]}")
        suite, runtime = ctypes.CDLL(str(library)), EmulatorRuntime(kit.runtime)
        launches = []
        for name, strided in functions():
            runtime.reset()
            getattr(suite, name)(*([2] if strided else []))
            for launch in parse_report(runtime.report(), hidden=[kit.directory]).launches:
                counts = {key: float(launch.counts.get(key, 0)) for key in METRICS}
                launches.append(Launch(_short(launch.kernel), counts))
    return launches


# --- a GPU -------------------------------------------------------------------------------------


def gpu_counts(ncu: str, nvcc: str, architecture: str) -> tuple[list[Launch], list[str]]:
    """Counts of every launch of the suite on a GPU, in order, and what it cannot count.

    Raises:
        ToolchainFault: nvcc or ncu failed; the message has its last words.
    """
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "suite"
        main = "\n".join(f"  {name}({'2' if strided else ''});" for name, strided in functions())
        source = program.with_suffix(".cu")
        head = "#include <cuda_fp16.h>\n#include <cuda_runtime.h>\n"
        source.write_text(
            f"{head}{SUITE.read_text()}\nint main() {{\n{main}\n"
            "  return cudaDeviceSynchronize() != cudaSuccess;\n}\n"
        )
        _run([nvcc, "-O3", f"-arch={architecture}", "-o", str(program), str(source)])
        wanted, missing = dict(METRICS), []
        while wanted:
            names = ",".join(f"{metric}.sum" for metric in wanted.values())
            command = [ncu, "--csv", "--print-units", "base", "--metrics", names, str(program)]
            finished = subprocess.run(
                command, capture_output=True, text=True, timeout=240, check=False
            )
            said = finished.stdout + finished.stderr
            refused = _MISSING.search(said)
            gone = [key for key, metric in wanted.items() if refused and metric in refused[1]]
            if not gone:
                break
            for key in gone:
                missing.append(wanted.pop(key))
        launches = parse_ncu_csv(finished.stdout)
        if not launches:
            raise ToolchainFault(f"ncu: expected counts as CSV, got: {said.strip()[-600:]}")
    return launches, missing


def parse_ncu_csv(text: str) -> list[Launch]:
    """Counts by launch from `ncu --csv --metrics …`, which writes a line for each metric."""
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if first is None:
        return []
    ours = {f"{metric}.sum": key for key, metric in METRICS.items()}
    launches: dict[int, Launch] = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines[first:]))):
        key = ours.get(row.get("Metric Name") or "")
        value = (row.get("Metric Value") or "").replace(",", "")
        if key is not None and re.fullmatch(r"\d+(\.\d+)?", value):
            launch = Launch(_short(row["Kernel Name"]), {})
            launches.setdefault(int(row["ID"]), launch).counts[key] = float(value)
    return [launches[number] for number in sorted(launches)]


def _short(kernel: str) -> str:
    """`void transpose<32>(const float *, float *)` → `transpose<32>`."""
    name = re.sub(r"\(int\)", "", kernel.removeprefix("void ")).split("(")[0]
    return name.replace(" ", "")


def _run(command: Sequence[str]) -> None:
    finished = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    if finished.returncode:
        said = (finished.stdout + finished.stderr).strip()[-600:]
        raise ToolchainFault(f"{command[0]}: exit status {finished.returncode}: {said}")


# --- comparing ---------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Row:
    """One count of one launch on both; launches are numbered from 1, in order."""

    launch: int
    kernel: str
    count: str
    emulator: float
    gpu: float
    agrees: bool


def compare(emulator: Sequence[Launch], gpu: Sequence[Launch]) -> list[Row]:
    """Every count that both have of a launch, sectors per request included.

    Raises:
        UsageError: They are not of the same launches.
    """
    if len(emulator) != len(gpu):
        raise UsageError(f"expected counts of {len(emulator)} launches, got {len(gpu)}")
    rows = []
    for number, (here, there) in enumerate(zip(emulator, gpu, strict=True), 1):
        if here.kernel.split("<")[0] != there.kernel.split("<")[0]:
            raise UsageError(f"launch {number}: expected {here.kernel}, got {there.kernel}")
        ours, theirs = _with_ratios(here.counts), _with_ratios(there.counts)
        for count in ours:
            if count in theirs and (ours[count] or theirs[count]):
                a, b = ours[count], theirs[count]
                within = abs(a - b) <= _RELATIVE * max(a, b)
                near = min(a, b) < _SMALL and abs(a - b) <= _ABSOLUTE and "per" not in count
                rows.append(Row(number, here.kernel, count, a, b, within or near))
    return rows


def _with_ratios(counts: Mapping[str, float]) -> dict[str, float]:
    found = dict(counts)
    for kind in ("load", "store"):
        requests = counts.get(f"global_{kind}_requests", 0.0)
        if requests and f"global_{kind}_sectors" in counts:
            ratio = counts[f"global_{kind}_sectors"] / requests
            found[f"global_{kind}_sectors_per_request"] = ratio
    return found


def _tell(options: argparse.Namespace) -> int:
    told = json.loads(options.gpu.read_text())
    rows = compare(_read(options.emulator), _read(options.gpu))
    agree = sum(row.agrees for row in rows)
    print("| launch | count | emulator | GPU | agrees |\n|---|---|---|---|---|")
    for row in rows:
        mark = "yes" if row.agrees else "**no**"
        name = f"{row.launch} {row.kernel}"
        print(f"| {name} | {row.count} | {row.emulator:g} | {row.gpu:g} | {mark} |")
    print(f"\n{agree} of {len(rows)} counts of {len({row.launch for row in rows})} launches agree")
    if options.json is not None:
        result = {
            "device": told.get("device", ""),
            "missing_metrics": told.get("missing", []),
            "agree": agree,
            "counts": len(rows),
            "rows": [dataclasses.asdict(row) for row in rows],
        }
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    return 0


def _emulator(options: argparse.Namespace) -> int:
    _write(options.json, "emulator", emulator_counts())
    return 0


def _gpu(options: argparse.Namespace) -> int:
    ncu, nvcc = options.ncu or shutil.which("ncu"), find_nvcc()
    if ncu is None or nvcc is None:
        raise ToolchainFault(
            f"expected nvcc and ncu, got {nvcc or 'no nvcc'} and {ncu or 'no ncu'}"
        )
    launches, missing = gpu_counts(ncu, nvcc, options.arch)
    _write(options.json, options.device, launches, missing)
    return 0


def _write(
    path: pathlib.Path, device: str, launches: Sequence[Launch], missing: Sequence[str] = ()
) -> None:
    rows = [dataclasses.asdict(launch) for launch in launches]
    result = {"device": device, "missing": list(missing), "launches": rows}
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(
        f"counts of {len(rows)} launches in {path}; not to be had: {', '.join(missing) or 'none'}"
    )


def _read(path: pathlib.Path) -> list[Launch]:
    return [Launch(**row) for row in json.loads(path.read_text())["launches"]]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    ours = commands.add_parser("emulator", help="count on the emulator")
    ours.set_defaults(act=_emulator)
    theirs = commands.add_parser("gpu", help="count on a GPU")
    theirs.add_argument("--ncu", help="path of ncu; default: the one on the PATH")
    theirs.add_argument("--arch", default="native", help="nvcc's -arch")
    theirs.add_argument("--device", default="GPU", help="what the figures are to be called by")
    theirs.set_defaults(act=_gpu)
    comparing = commands.add_parser("compare", help="compare both")
    comparing.add_argument("emulator", type=pathlib.Path)
    comparing.add_argument("gpu", type=pathlib.Path)
    comparing.set_defaults(act=_tell)
    for command in (ours, theirs):
        command.add_argument("--json", type=pathlib.Path, required=True)
    comparing.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args(arguments)
    return int(options.act(options))


if __name__ == "__main__":
    sys.exit(main())
