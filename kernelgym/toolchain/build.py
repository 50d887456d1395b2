"""What is asked of the build service, and what it answers. Records only."""

from __future__ import annotations

import dataclasses

from kernelgym.judge.verdict import Diagnostic, KernelResources

__all__ = ["BuildRequest", "BuildResult", "SourceFile"]
