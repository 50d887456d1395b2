#!/bin/sh
# Creates a virtual environment and installs kernelgym with what its tests and tools need.
# Usage: scripts/setup.sh FOLDER
set -eu
venv=$1
python=${PYTHON:-python3}

fail() { printf '%s\n' "$@" >&2; exit 1; }

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    fail "expected Python 3.10 or newer, got $("$python" --version 2>&1)"
command -v g++ >/dev/null ||
    fail "expected g++ 11 or newer on PATH, found none (Debian, Ubuntu: sudo apt install g++)"
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv" ||
    fail "could not create a virtual environment (Debian, Ubuntu: sudo apt install python3-venv)"
pip="$venv/bin/python -m pip install --disable-pip-version-check --quiet"

# Without a GPU, a CPU build of torch: it is a tenth of the download.
if ! "$venv/bin/python" -c 'import torch' 2>/dev/null; then
    echo "installing torch ..."
    if command -v nvidia-smi >/dev/null && nvidia-smi >/dev/null 2>&1; then
        $pip "torch>=2.9"
    else
        $pip --index-url https://download.pytorch.org/whl/cpu --timeout 10 --retries 0 "torch>=2.9" \
            2>/dev/null || $pip -r requirements/ci.txt
    fi
fi
echo "installing kernelgym ..."
$pip "setuptools>=77" wheel
$pip --no-build-isolation -e ".[test,dev]"
touch "$venv/.ready"
