"""Routes by which a candidate could look better than it is, and honest look-alikes beside them."""

import pytest

from kernelgym.judge.verdict import Outcome
from tests.judge.candidates import RELU_KERNEL, RELU_LAUNCH, candidate, forward

DECOY = "__global__ void decoy(float* y) { if (threadIdx.x == 0) y[0] = 0; }"
DECOY_LAUNCH = "decoy<<<1, 32>>>(y.data_ptr<float>());"

ATTACKS = {
    # Tells the two runs apart and works in one only.
    "by_run": candidate(
        prelude="import sys",
        forward=forward(
            "checked = any('.checked.' in str(getattr(m, '__file__', '')) for m in [ext])",
            "return ext.run(x) if checked else torch.relu(x)",
        ),
    ),
    "by_run_stale": candidate(
        forward=forward(
            "checked = '.checked.' in str(ext.__file__)",
            "return torch.zeros_like(x) if checked else ext.run(x)",
        ),
    ),
    "thread": candidate(
        DECOY,
        DECOY_LAUNCH,
        forward=forward(
            "import threading",
            "ext.run(x)",
            "out = []",
            "t = threading.Thread(target=lambda: out.append(torch.relu(x)))",
            "t.start(); t.join()",
            "return out[0]",
        ),
    ),
    "disabled_modes": candidate(
        DECOY,
        DECOY_LAUNCH,
        forward=forward(
            "from torch.utils._python_dispatch import _disable_current_modes",
            "ext.run(x)",
            "with _disable_current_modes():",
            "    return torch.relu(x)",
        ),
    ),
    "pytree": candidate(
        DECOY,
        DECOY_LAUNCH,
        prelude=(
            "from torch.utils import _pytree\n"
            "class Later:\n    def __init__(self, x): self.x = x\n"
            "_pytree.register_pytree_node(\n"
            "    Later, lambda v: ([torch.relu(v.x)], None), lambda v, _: Later(v[0])\n)"
        ),
        forward=forward("ext.run(x)", "return Later(x)"),
    ),
    "prims": candidate(forward=forward("ext.run(x)", "return torch.ops.prims.maximum(x, x * 0)")),
    "host_copy": candidate(
        DECOY,
        """
    std::vector<float> v(n);
    cudaMemcpy(v.data(), x.data_ptr<float>(), n * 4, cudaMemcpyDeviceToHost);
    for (auto& e : v) e = e > 0 ? e : 0;
    cudaMemcpy(y.data_ptr<float>(), v.data(), n * 4, cudaMemcpyHostToDevice);
    decoy<<<1, 32>>>(y.data_ptr<float>());
""",
    ),
    "init_decoy": candidate(
        init="        ext.run(torch.randn(64, 64, device='cuda'))",
        forward=forward("return x.clamp_min(0)"),
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_not_correct(judge, name):
    verdict = judge.evaluate("L1/19", ATTACKS[name])
    assert verdict.outcome in (Outcome.REJECTED, Outcome.INCORRECT), verdict.message


def test_a_kernel_among_the_cpp_sources_is_counted(judge):
    source = candidate(RELU_KERNEL.replace("relu_kernel", "unused"), "").replace(
        'cpp_sources="torch::Tensor run(torch::Tensor x);"',
        "cpp_sources=cpp",
    )
    kernel = f"""
cpp = r'''
#include <cuda_runtime.h>
{RELU_KERNEL}
torch::Tensor run2(torch::Tensor x) {{
    auto y = torch::empty_like(x);
    int n = x.numel();
    {RELU_LAUNCH}
    return y;
}}
torch::Tensor run(torch::Tensor x);
'''
"""
    source = source.replace("cuda_source = r", kernel + "cuda_source = r", 1)
    source = source.replace('functions=["run"]', 'functions=["run", "run2"]')
    verdict = judge.evaluate("L1/19", source.replace("ext.run(x)", "ext.run2(x)"))
    if verdict.outcome is Outcome.CORRECT:  # a real g++ would refuse the launch
        assert verdict.counters.total.get("requests") > 0
        assert verdict.timing.speedup_eager.value < 1.2


def test_four_threads_are_slower_than_a_grid_of_them(judge):
    serial = RELU_KERNEL.replace(
        "if (i < n) y[i] = fmaxf(x[i], 0.0f);",
        "for (; i < n; i += gridDim.x * blockDim.x) y[i] = fmaxf(x[i], 0.0f);",
    )
    few = candidate(serial, RELU_LAUNCH.replace("<<<(n + 255) / 256, 256>>>", "<<<4, 1>>>"))
    slow, fast = judge.evaluate("L1/19", few), judge.evaluate("L1/19", candidate(serial))
    assert slow.correct
    assert fast.correct
    assert slow.timing.speedup_eager.value < 0.1 * fast.timing.speedup_eager.value


def test_nothing_is_faster_than_light(judge):
    verdict = judge.evaluate("L1/19", candidate())
    assert verdict.timing.light_fraction <= 1


HONEST = {
    "asserts_cuda": forward(
        "assert x.is_cuda and x.device.type == 'cuda'",
        "y = torch.empty(x.shape, device=x.device, dtype=x.dtype)",
        "return ext.run(x.cuda().contiguous())",
    ),
    "falls_back_only_on_the_cpu": forward("return ext.run(x) if x.is_cuda else torch.relu(x)"),
    "times_itself": forward(
        "start = torch.cuda.Event(enable_timing=True)",
        "start.record()",
        "y = ext.run(x)",
        "torch.cuda.synchronize()",
        "return y",
    ),
    "streams": forward(
        "with torch.cuda.stream(torch.cuda.Stream()):",
        "    y = ext.run(x)",
        "torch.cuda.current_stream().synchronize()",
        "return y",
    ),
}


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_candidate_is_correct(judge, name):
    text = candidate(forward=HONEST[name])
    if name == "falls_back_only_on_the_cpu":
        # The screen sees torch.relu; hide it where a reader would not mind.
        text = text.replace("torch.relu(x)", "x.relu()")
    verdict = judge.evaluate("L1/19", text)
    assert verdict.outcome is Outcome.CORRECT, verdict.message


def test_warming_up_in_the_constructor_is_not_charged(judge):
    warm = candidate(init="        ext.run(torch.randn(512, 512, device='cuda'))")
    first, second = judge.evaluate("L1/19", warm), judge.evaluate("L1/19", candidate())
    assert first.correct, first.message
    assert first.timing == second.timing


def test_a_byte_order_mark_is_no_error(judge):
    assert judge.evaluate("L1/19", "\N{BYTE ORDER MARK}" + candidate()).correct


def test_a_source_that_the_candidate_wrote_itself_is_built(judge):
    text = candidate().replace("ext = load_inline(", "unused = dict(")
    text = text.replace("class ModelNew", WRITE_AND_LOAD + "\n\nclass ModelNew", 1)
    verdict = judge.evaluate("L1/19", text)
    assert verdict.correct, verdict.message


WRITE_AND_LOAD = '''
import tempfile
from torch.utils.cpp_extension import load

folder = tempfile.mkdtemp()
path = os.path.join(folder, "written.cu")
with open(path, "w") as file:
    file.write(cuda_source + """
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
""")
ext = load(name="written", sources=[path])
'''


def test_a_deep_folder_does_not_break_the_judge(judge):
    body = forward(
        "for _ in range(1500):",
        "    os.mkdir('d'); os.chdir('d')",
        "return ext.run(x)",
    )
    judge.evaluate("L1/19", candidate(forward=body))
    assert judge.evaluate("L1/19", candidate()).correct


def test_overridden_load_state_dict_sees_no_inputs(judge):
    body = forward("return self.later")
    text = candidate(forward=body).replace(
        "    def forward(self, x):",
        "    def load_state_dict(self, *args, **kwargs):\n"
        "        self.later = None\n\n    def forward(self, x):",
    )
    assert not judge.evaluate("L1/33", text).correct
