#!/bin/sh
# Creates a virtual environment and installs kernelgym with what its tests and tools need.
# Usage: scripts/setup.sh FOLDER
set -eu
venv=$1
python=${PYTHON:-python3}

fail() { printf '%s\n' "$@" >&2; exit 1; }

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    fail "expected Python 3.10 or newer, got $("$python" --version 2>&1)" \
        "(a newer one elsewhere: make PYTHON=python3.12 ...)"
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    fail "expected a Python with venv, got $("$python" --version 2>&1) without it" \
        "(Debian, Ubuntu: sudo apt install python3-venv)"
command -v g++ >/dev/null ||
    fail "expected g++ 11 or newer on PATH, found none (Debian, Ubuntu: sudo apt install g++)"
gcc=$(g++ -dumpfullversion 2>/dev/null || g++ -dumpversion)
[ "${gcc%%.*}" -ge 11 ] ||
    fail "expected g++ 11 or newer on PATH, got $gcc at $(command -v g++)" \
        "(Debian, Ubuntu: sudo apt install g++-11, and let g++ on PATH be it)"

if ! [ -x "$venv/bin/python" ]; then
    echo "creating a virtual environment in $venv; the first setup takes some minutes in all ..."
    "$python" -m venv "$venv" || fail "could not create a virtual environment in $venv"
fi
pip="$venv/bin/python -m pip install --disable-pip-version-check --quiet"

# Without a GPU, a CPU build of torch: it is a tenth of the download.
if ! "$venv/bin/python" -c 'import torch' 2>/dev/null; then
    if command -v nvidia-smi >/dev/null && nvidia-smi >/dev/null 2>&1; then
        echo "installing torch (for CUDA, some GB); this takes several minutes ..."
        $pip "torch>=2.9"
    else
        echo "installing torch (CPU build, about 200 MB); this takes a minute or two ..."
        $pip --index-url https://download.pytorch.org/whl/cpu --timeout 10 --retries 0 "torch>=2.9" \
            2>/dev/null || {
            echo "download.pytorch.org did not answer; taking torch from the usual index ..."
            $pip -r requirements/ci.txt
        }
    fi
fi
echo "installing kernelgym, and what its tests and tools need (about 100 MB) ..."
$pip "setuptools>=77" wheel
$pip --no-build-isolation -e ".[test,dev]"
touch "$venv/.ready"
echo "done; . $venv/bin/activate lets a shell find the kernelgym command"
