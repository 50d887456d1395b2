"""The build service: the one place where sources become binaries.

A request's key is a digest of all that the result depends on. Equal requests, also from other
threads and processes, are built once; failed builds are kept like others, timeouts are not. What is
kept is what compilers wrote, not where it points: the same sources may lie on other lines of the
next workspace.

Compilers run confined (`kernelgym.toolchain.sandbox`) in a scratch folder:

::

    work/    the workspace's files apart from Python; the compilers' current folder
    units/   what the toolchain generated
    out/     what compilers make
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from kernelgym.config import PROTECTIONS
from kernelgym.errors import ConfigError, ToolchainFault, UsageError
from kernelgym.toolchain.build import (
    BuildRequest,
    BuildResult,
    Diagnostic,
    KernelResources,
    ToolCall,
)
from kernelgym.toolchain.cache import ContentCache
from kernelgym.toolchain.cuda import NvccReport, check_with_nvcc, demangled, parse_resources
from kernelgym.toolchain.diagnostics import parse_compiler_output, place_at, resolve, tidy
from kernelgym.toolchain.emulated import Emulated
from kernelgym.toolchain.emulator import EmulatorKit
from kernelgym.toolchain.flags import Flags, screen_flags
from kernelgym.toolchain.gpu import Gpu
from kernelgym.toolchain.nvrtc import Nvrtc
from kernelgym.toolchain.nvrtc_client import NvrtcServer
from kernelgym.toolchain.nvrtc_steps import missing_instantiations, run_nvrtc
from kernelgym.toolchain.plan import SCRATCH, DeviceStep, Finding, Plan, Step, Toolchain
from kernelgym.toolchain.requests import compilable_files, refusals, request_key
from kernelgym.toolchain.sandbox import Finished, run_confined
from kernelgym.toolchain.sourcemap import Place, SourceMap
from kernelgym.toolchain.tools import (
    ToolRecord,
    refused_arguments,
    run_tool,
    tool_key,
    tool_path,
)
from kernelgym.toolchain.torch_headers import TorchHeaders, wanted_of_torch
from kernelgym.toolchain.translation import translation_units
from kernelgym.toolchain.units import TORCH_HEADERS, flat_name, is_cuda, source_texts

__all__ = ["BuildService"]

_RECORD = "build.json"
_MEMORY_BYTES = 4 * 2**30
_FILE_BYTES = 256 * 2**20
_NOT_FOUND = 127
_OUTPUT_BYTES = 2**20
_MAX_PROCESSES = 1024
_ENDED_BY_LIMIT = re.compile(
    r"out of memory|virtual memory exhausted|Killed signal|File size limit|CPU time limit"
)


class _Said(msgspec.Struct, frozen=True):
    """What one step wrote."""

    tool: str
    text: str


class _Record(msgspec.Struct, frozen=True):
    """A build as the cache keeps it."""

    status: str
    said: tuple[_Said, ...] = ()
    findings: tuple[Finding, ...] = ()
    libraries: tuple[tuple[str, str], ...] = ()
    kernels: tuple[KernelResources, ...] = ()


class _Kept(NamedTuple):
    """A build, and the folder that holds its libraries (of no meaning when there are none)."""

    record: _Record
    entry: Path


class BuildService:
    """Builds extension modules; safe to call from several threads.

    Args:
        cache_root: Folder of the cache; default: the user's cache folder.
        jobs: Compilers that run at once; default: the number of processors.
        protection: How compilers are confined: `"basic"`, `"standard"` or `"hardened"`.
        toolchains: Toolchains by target, `"emulator"` and `"gpu"`, in place of kernelgym's own; where
            there are several, each but the last may leave a source to the next. And `"torch"`: the
            one taken where those for a GPU lack something of torch's.

    Raises:
        ConfigError: There is no such level of protection.
    """

    def __init__(
        self,
        cache_root: str | os.PathLike[str] | None = None,
        *,
        jobs: int | None = None,
        protection: str = "standard",
        toolchains: Mapping[str, Toolchain | Sequence[Toolchain]] | None = None,
    ) -> None:
        if protection not in PROTECTIONS:
            accepted = ", ".join(PROTECTIONS)
            raise ConfigError(f"protection: expected one of {accepted}, got {protection!r}")
        self.cache = ContentCache(cache_root)
        self.protection = protection
        own = toolchains if toolchains is not None else _own_toolchains(self.cache.root)
        self._toolchains = {
            target: tuple(ways) if isinstance(ways, Sequence) else (ways,)
            for target, ways in own.items()
        }
        self._pool = concurrent.futures.ThreadPoolExecutor(
            jobs or os.cpu_count() or 1, thread_name_prefix="kernelgym-build"
        )

    def __enter__(self) -> BuildService:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Waits for running compilers and ends the service's threads."""
        self._pool.shutdown(cancel_futures=True)
        for toolchain in (each for chain in self._toolchains.values() for each in chain):
            if isinstance(toolchain, Nvrtc):
                toolchain.close()

    def start(self, target: str) -> None:
        """Gets ready for builds of a target, so that the first is as quick as the next.

        Raises:
            ToolchainFault: A compiler is missing, too old or broken.
        """
        for toolchain in self._toolchains_for(target):
            if isinstance(toolchain, Nvrtc):
                toolchain.start(target)

    def emulator(self) -> EmulatorKit:
        """The emulator that candidates' libraries are linked to, built on first use.

        Raises:
            ToolchainFault: g++ is missing, too old, or cannot build it.
        """
        toolchain = self._toolchains_for("emulator")[-1]
        if not isinstance(toolchain, Emulated):
            raise ToolchainFault(f"expected kernelgym's own emulator, got {type(toolchain)}")
        return toolchain.kit()

    def gpu_compiler(self) -> str:
        """The compiler that builds for a GPU, with its version.

        Raises:
            ToolchainFault: There is none.
        """
        for toolchain in self._toolchains_for("gpu"):
            if isinstance(toolchain, Gpu):
                return toolchain.compiler()
        raise ToolchainFault("expected kernelgym's own toolchain of a GPU, got others")

    def build(self, request: BuildRequest, *, timeout: float) -> BuildResult:
        """Builds what is asked for, or finds it in the cache.

        Args:
            request: What to build.
            timeout: Wall-clock limit of each compiler, in seconds; they run side by side.

        Returns:
            The result; a source that does not compile is a result too.

        Raises:
            ToolchainFault: A compiler is missing, too old or broken, or the target is not known.
            SandboxFault: A compiler could not be confined.
        """
        if request.tool is not None:
            return self._run_tool(request, request.tool, timeout)
        started = time.monotonic()
        flags = screen_flags(request)
        why = ""
        pending = [*self._toolchains_for(request.target)]
        while True:
            toolchain = pending.pop(0)
            result, record = self._build_with(toolchain, request, flags, timeout)
            wanted = self._wanted_of_torch(toolchain, request, record)
            if wanted:
                pending, why = [*self._toolchains["torch"]], wanted
            elif result.status in ("ok", "timeout") or not pending:
                return dataclasses.replace(result, why=why, seconds=time.monotonic() - started)
            else:
                errors = [d.text for d in result.diagnostics if d.severity == "error"]
                why = f"{toolchain.path}: {errors[0] if errors else 'it does not compile'}"

    def _build_with(
        self, toolchain: Toolchain, request: BuildRequest, flags: Flags, timeout: float
    ) -> tuple[BuildResult, _Record | None]:
        """Builds on one way; no record where the request itself is refused."""
        refused = (*flags.refused, *refusals(request))
        key = request_key(request, toolchain.identity())
        source_map = SourceMap(request.files)
        if refused:
            result = BuildResult(
                key=key, status="compile_error", path=toolchain.path, diagnostics=tidy(refused)
            )
            return result, None
        kept, cached = self._cached(key), True
        if kept is None:
            with self._turn(key, timeout):
                kept = self._cached(key)
                if kept is None:
                    kept, cached = self._build(request, flags, toolchain, key, timeout), False
        result = BuildResult(
            key=key,
            status=kept.record.status,
            path=toolchain.path,
            libraries=tuple((name, str(kept.entry / file)) for name, file in kept.record.libraries),
            diagnostics=_diagnostics(kept.record, request, source_map),
            kernels=kept.record.kernels,
            cached=cached,
        )
        return result, kept.record

    def _wanted_of_torch(
        self, toolchain: Toolchain, request: BuildRequest, record: _Record | None
    ) -> str:
        """Why to build again with torch's real headers, or `""`."""
        if record is None or record.status != "compile_error" or toolchain.path == "emulator":
            return ""
        if toolchain.path == "torch" or "torch" not in self._toolchains:
            return ""
        texts = (*source_texts(request).values(), *(file.text for file in request.files))
        wanted = wanted_of_torch((said.text for said in record.said), texts)
        return f"the stand-in for torch's headers lacks what it needs: {wanted}" if wanted else ""

    def check(self, request: BuildRequest, architecture: str, *, timeout: float) -> NvccReport:
        """Compiles the device code with nvcc for a GPU architecture; needs nvcc and no GPU.

        Args:
            request: What a candidate asked to build, for whichever target.
            architecture: `"sm_90"` and the like.
            timeout: Wall-clock limit of each translation unit, in seconds.

        Raises:
            ToolchainFault: There is no nvcc, or it does not know the architecture.
            SandboxFault: nvcc could not be confined.
            UsageError: The request is one that `build` refuses.
        """
        flags = screen_flags(request)
        for wrong in (*flags.refused, *refusals(request)):
            raise UsageError(wrong.text)
        units = [unit for unit in translation_units(request) if is_cuda(unit.path)]
        return check_with_nvcc(
            {flat_name(unit.path): unit.text for unit in units},
            architecture,
            source_map=SourceMap(request.files),
            sources=source_texts(request),
            files=compilable_files(request),
            include_dirs=(str(TORCH_HEADERS), *flags.include_dirs),
            flags=flags.device,
            timeout=timeout,
            protection=self.protection,
        )

    def _run_tool(self, request: BuildRequest, call: ToolCall, timeout: float) -> BuildResult:
        """Runs a tool for a package, or finds in the cache what it gave."""
        started = time.monotonic()
        wrong = refused_arguments(call)
        if wrong or request.target == "emulator":
            why = wrong or f"{call.tool}: expected a request for a GPU, got one for the emulator"
            return BuildResult("", "compile_error", call.tool, why=why)
        path = tool_path(call.tool)
        key = tool_key(call, path)
        record, cached = self._kept_tool(key), True
        if record is None:
            with self._turn(key, timeout):
                record = self._kept_tool(key)
                if record is None:
                    run = self._pool.submit(
                        run_tool, call, path, timeout=timeout, protection=self.protection
                    )
                    record, cached = run.result(), False
                    if not record.timed_out:
                        self._publish(key, record, {})
        failed = record.timed_out or record.outcome.returncode != 0
        texts = {name: content.decode("utf-8", "replace") for name, content in call.inputs}
        return BuildResult(
            key=key,
            status="timeout" if record.timed_out else "compile_error" if failed else "ok",
            path=call.tool,
            diagnostics=parse_compiler_output(
                record.outcome.stderr + record.outcome.stdout,
                tool=call.tool,
                source_map=SourceMap(request.files),
                sources=texts,
            )
            if failed
            else (),
            kernels=record.kernels,
            cached=cached,
            seconds=time.monotonic() - started,
            outcome=record.outcome,
        )

    def _kept_tool(self, key: str) -> ToolRecord | None:
        entry = self.cache.get(key)
        if entry is None:
            return None
        try:
            return msgspec.json.decode((entry / _RECORD).read_bytes(), type=ToolRecord)
        except (OSError, msgspec.DecodeError):
            return None

    def _toolchains_for(self, target: str) -> Sequence[Toolchain]:
        kind = "emulator" if target == "emulator" else "gpu"
        if kind not in self._toolchains:
            raise ToolchainFault(
                f"target: expected one of {sorted(self._toolchains)}, got {target!r}"
            )
        return self._toolchains[kind]

    def _nvrtc(self, target: str) -> NvrtcServer:
        for toolchain in self._toolchains_for(target):
            if isinstance(toolchain, Nvrtc):
                return toolchain.server(target)
        raise ToolchainFault("expected a toolchain that uses NVRTC, got none")

    @contextlib.contextmanager
    def _turn(self, key: str, timeout: float) -> Iterator[None]:
        """Holds the key; whoever holds it now may be waiting for a free processor itself."""
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(self.cache.lock(key, 10 * timeout + 60))
            except TimeoutError as error:
                raise ToolchainFault(
                    f"another process has been building {key} for too long"
                ) from error
            yield

    def _cached(self, key: str) -> _Kept | None:
        entry = self.cache.get(key)
        if entry is None:
            return None
        try:
            record = msgspec.json.decode((entry / _RECORD).read_bytes(), type=_Record)
        except (OSError, msgspec.DecodeError):
            return None  # Dropped meanwhile, or of another version: built again.
        return _Kept(record, entry)

    def _build(
        self, request: BuildRequest, flags: Flags, toolchain: Toolchain, key: str, timeout: float
    ) -> _Kept:
        plan = toolchain.plan(request, flags, f"kg_{key[:24]}")
        if plan.findings:
            record = _Record(status=plan.findings[0].status, findings=plan.findings)
            return _Kept(record, self._publish(key, record, {}))
        with tempfile.TemporaryDirectory(prefix="kernelgym-") as scratch:
            _write(request, plan, Path(scratch))
            record = self._compile(plan, scratch, timeout)
            if record.status == "timeout":
                return _Kept(record, Path())
            names = [name for _, name in record.libraries]
            names += [name for variant in plan.variants for name in variant.beside]
            made = {name: Path(scratch, "out", name) for name in names} if record.libraries else {}
            return _Kept(record, self._publish(key, record, made))

    def _publish(self, key: str, record: _Record | ToolRecord, made: Mapping[str, Path]) -> Path:
        try:
            return self.cache.publish(key, {_RECORD: msgspec.json.encode(record), **made})
        except OSError as error:
            raise ToolchainFault(
                f"{self.cache.root}: a build could not be kept: {error}"
            ) from error

    def _compile(self, plan: Plan, scratch: str, timeout: float) -> _Record:
        """Compiles all variants side by side, then links each; equal steps run once."""

        def start(step: Step | DeviceStep) -> concurrent.futures.Future[Finished]:
            return self._pool.submit(self._run, step, plan, scratch, timeout)

        distinct = dict.fromkeys(step for variant in plan.variants for step in variant.compiles)
        compiles = {step: start(step) for step in distinct}
        # None may still write when the scratch folder goes, not even when one ends in a fault.
        concurrent.futures.wait(compiles.values())
        ended = {step: future.result() for step, future in compiles.items()}
        if all(run.returncode == 0 for run in ended.values()):
            links = [variant.link for variant in plan.variants if variant.link is not None]
            later = {link: start(link) for link in links}
            again = {step: start(more) for step in distinct if (more := _more(step, scratch))}
            concurrent.futures.wait([*later.values(), *again.values()])
            ended.update((step, run.result()) for step, run in (*later.items(), *again.items()))
        said = tuple(_said(step, run) for step, run in ended.items())
        if any(run.timed_out for run in ended.values()):
            return _Record(status="timeout", said=said)
        if any(run.returncode != 0 for run in ended.values()):
            return _Record(status="compile_error", said=said)
        libraries = tuple((variant.name, variant.library) for variant in plan.variants)
        kernels = [k for step in said if step.tool == "nvrtc" for k in parse_resources(step.text)]
        described = [k for step in said if step.tool == "nvcc" for k in parse_resources(step.text)]
        kernels += demangled(described, scratch)
        return _Record("ok", said, libraries=libraries, kernels=tuple(kernels))

    def _run(self, step: Step | DeviceStep, plan: Plan, scratch: str, timeout: float) -> Finished:
        if isinstance(step, DeviceStep):
            return run_nvrtc(self._nvrtc(step.target), step, scratch, timeout, self.protection)
        finished = run_confined(
            [argument.replace(SCRATCH, scratch) for argument in step.command],
            cwd=os.path.join(scratch, "work"),
            readable=plan.readable,
            writable=(scratch,),
            wall_seconds=timeout,
            cpu_seconds=int(timeout) + 1,
            memory_bytes=_MEMORY_BYTES,
            file_bytes=_FILE_BYTES,
            output_bytes=_OUTPUT_BYTES,
            max_processes=_MAX_PROCESSES,
            env={"LC_ALL": "C"},
            protection=self.protection,
        )
        if finished.returncode == _NOT_FOUND:
            raise ToolchainFault(f"{step.command[0]}: {finished.stderr}")
        return finished


def _own_toolchains(cache_root: Path) -> dict[str, Sequence[Toolchain]]:
    gpu = Gpu()
    return {
        "emulator": (Emulated(cache_root / "kits"),),
        "gpu": (Nvrtc(cache_root / "kits", gpu), gpu),
        "torch": (TorchHeaders(),),
    }


def _more(step: Step | DeviceStep, scratch: str) -> DeviceStep | None:
    """The step again with what it lacks, when that shows only now."""
    return missing_instantiations(step, scratch) if isinstance(step, DeviceStep) else None


def _said(step: Step | DeviceStep, run: Finished) -> _Said:
    text = run.stderr + run.stdout
    if run.timed_out:
        text += f"\n{step.tool}: error: it did not end within the time limit"
    elif run.returncode != 0 and _ENDED_BY_LIMIT.search(text):
        text += (
            f"\n{step.tool}: error: it reached a limit: {_MEMORY_BYTES // 2**20} MiB of memory or "
            f"{_FILE_BYTES // 2**20} MiB of output"
        )
    elif run.returncode != 0 and "error" not in text and "undefined reference" not in text:
        text += f"\n{step.tool}: error: it ended with status {run.returncode}"
    return _Said(step.tool, text)


def _diagnostics(
    record: _Record, request: BuildRequest, source_map: SourceMap
) -> tuple[Diagnostic, ...]:
    """What a build said, in terms of this request's workspace."""
    sources = source_texts(request)
    found: list[Diagnostic] = []
    for finding in record.findings:
        place = resolve(finding.source, finding.line, source_map=source_map, sources=sources)
        found.append(
            place_at(
                source_map,
                place or Place("", finding.line, 0),
                "error",
                finding.text,
                tool=finding.tool,
                code=finding.code,
            )
        )
    for said in record.said:
        found += parse_compiler_output(
            said.text, tool=said.tool, source_map=source_map, sources=sources
        )
    return tidy(found)


def _write(request: BuildRequest, plan: Plan, scratch: Path) -> None:
    for folder in ("work", "units", "out"):
        (scratch / folder).mkdir()
    for file in compilable_files(request):
        _write_text(scratch / "work" / file.path, plan.files.get(file.path, file.text))
    for name, text in plan.units.items():
        _write_text(scratch / "units" / name, text)


def _write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Lone surrogates cannot be encoded; no compiler accepts what stands for them.
    path.write_text(text, encoding="utf-8", errors="replace", newline="")
