"""Reports: a run as one self-contained HTML page."""

from kernelgym.report.page import render_report, write_report

__all__ = ["render_report", "write_report"]
