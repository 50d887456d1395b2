"""Builds ahead of a judgement: a candidate's first lines run without a GPU, for what they ask.

What a candidate builds is known only when its module is imported: texts are put together, files
written, flags computed. So it is imported once more, in a confined process of its own that has no
GPU, and its requests go to the build service as they will in the judgement, which then finds the
binaries in the cache. Nothing that the candidate says here is used otherwise, and whatever goes
wrong is left to the judgement.
"""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import tempfile

from kernelgym.config import JudgeConfig
from kernelgym.errors import EnvironmentFault
from kernelgym.judge import protocol
from kernelgym.judge.confinement import candidate_policy
from kernelgym.judge.process import CandidateProcess, Zygote
from kernelgym.judge.screen import screen
from kernelgym.judge.standby import remove_folder
from kernelgym.toolchain.build import BuildRequest, BuildResult, SourceFile
from kernelgym.toolchain.service import BuildService

__all__ = ["prebuild"]

_RUN_SECONDS = 10.0


def prebuild(
    files: tuple[SourceFile, ...],
    config: JudgeConfig,
    target: str,
    service: BuildService,
    zygote: Zygote,
) -> tuple[BuildResult, ...]:
    """Imports a candidate for its builds alone.

    Args:
        files: The workspace.
        config: Gives the ruleset, the limits and the level of confinement.
        target: What to build for, such as `"sm_90"`.
        service: Builds and keeps.
        zygote: Where the candidate's process is forked from.

    Returns:
        What was built; nothing for a source that the screen rejects.
    """
    if screen(files, config.ruleset, emulated=False) is not None:
        return ()
    known = {file.path for file in files}

    def build(request: BuildRequest) -> BuildResult:
        # The same request as the judgement will make of it, or its key is another.
        written = tuple(file for file in request.files if file.path not in known)
        request = dataclasses.replace(request, files=(*files, *written), target=target)
        return service.build(request, timeout=config.build_timeout)

    harmless = (EnvironmentFault, protocol.CandidateGone, protocol.CandidateTimeout)
    scratch = tempfile.mkdtemp(prefix="kernelgym-")
    setup = protocol.Setup(
        target=target,
        variant="fast",
        scratch=scratch,
        policy=candidate_policy(config, pathlib.Path(scratch), (service.cache.root,)),
    )
    try:
        with CandidateProcess(zygote) as process:
            process.attend(build, min(_RUN_SECONDS, config.run_timeout))
            # It says nothing of the candidate that it fails here: there is no GPU.
            with contextlib.suppress(*harmless):
                process.setup(setup)
                process.ask(protocol.Import(files), protocol.Imported)
            return tuple(process.builds)
    except EnvironmentFault:  # the judgement meets it again, and reports it
        return ()
    finally:
        remove_folder(pathlib.Path(scratch))
