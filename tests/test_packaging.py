"""The wheel, installed elsewhere, works; and there is one module object of each."""

import os
import pathlib
import subprocess
import sys
import sysconfig
import venv

import pytest

ROOT = pathlib.Path(__file__).parents[1]
TRY = """
import gymnasium as gym, kernelgym, kernelgym.agents, kernelgym.leaderboard
from kernelgym import tasks
from kernelgym.toolchain.units import TORCH_HEADERS
assert "fresh" in kernelgym.__file__, kernelgym.__file__
assert len(tasks.ids()) == 250
assert (TORCH_HEADERS / "torch" / "extension.h").exists()
env = gym.make("KernelBench-L1-v0")
observation, info = env.reset(seed=0)
print(info["task_id"])
env.close()
"""


@pytest.fixture(scope="module")
def fresh_python(tmp_path_factory):
    """A new environment with the wheel in it, which finds its dependencies in the current one."""
    folder = tmp_path_factory.mktemp("fresh")
    pip = [sys.executable, "-m", "pip"]
    build = [*pip, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder]
    subprocess.run([*build, ROOT], check=True, cwd=folder)
    (wheel,) = folder.glob("kernelgym-*.whl")
    target = folder / "venv"
    venv.create(target, with_pip=False)
    python = target / "bin" / "python"
    site = pathlib.Path(
        subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
    )
    subprocess.run(
        [*pip, "install", "--quiet", "--no-deps", "--target", site, wheel],
        check=True,
    )
    # Behind the wheel's own folder: only what is not there is taken from here.
    outer = [sysconfig.get_path("purelib"), *(p for p in sys.path if p.endswith("site-packages"))]
    (site / "dependencies.pth").write_text("\n".join(dict.fromkeys(outer)) + "\n")
    return python


def test_the_wheel_works_in_a_fresh_environment(fresh_python, tmp_path):
    result = subprocess.run(
        [fresh_python, "-c", TRY],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("L1/")


def test_the_wheel_carries_no_top_level_agents_tasks_or_leaderboard(fresh_python, tmp_path):
    code = (
        "import importlib.metadata as m; "
        "print({p.parts[0] for p in m.files('kernelgym') if p.suffix == '.py'})"
    )
    result = subprocess.run(
        [fresh_python, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert result.stdout.strip() == "{'kernelgym'}"


def test_tasks_and_agents_are_one_module_each():
    import kernelgym.agents
    import kernelgym.tasks

    for module in (kernelgym.agents, kernelgym.tasks):
        assert module.__name__.startswith("kernelgym.")
    assert "agents" not in sys.modules
    assert "tasks" not in sys.modules


def test_importing_is_light():
    code = "import sys, kernelgym; assert 'torch' not in sys.modules; print(len(kernelgym.__all__))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
