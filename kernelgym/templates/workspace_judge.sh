#!/bin/sh
# Judges this folder for task @task@; options are those of `kernelgym evaluate --help`.
cd "$(dirname "$0")" || exit 9
# The folder itself is taken off Python's path: a file here must not pass for a module.
start='import sys; sys.path[:] = [p for p in sys.path if p]; from kernelgym.cli import main; main()'
exec @python@ -c "$start" evaluate @reference@ . @options@ "$@"
