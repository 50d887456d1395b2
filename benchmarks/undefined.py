"""Kernels for L1/19 (ReLU) whose behaviour CUDA does not define: races, wild and unset memory.

What the emulator says of them is a matter of rules; what a GPU gives is one of many outcomes. They
are part of the candidates that `benchmarks/agreement.py` has both judge.
"""

from __future__ import annotations

from tests.judge.candidates import RELU_KERNEL, RELU_LAUNCH, candidate

__all__ = ["UNDEFINED"]


def _kernel(body: str, launch: str = RELU_LAUNCH) -> str:
    head = "__global__ void relu_kernel(const float* x, float* y, int n) {"
    return candidate(f"\n{head}\n{body}\n}}\n", launch)


def _reversed_through_shared(barrier: str) -> str:
    return _kernel(
        f"""
    __shared__ float tile[256];
    int i = blockIdx.x * 256 + threadIdx.x, last = min(256, n - blockIdx.x * 256) - 1;
    if (i < n) tile[threadIdx.x] = fmaxf(x[i], 0.0f);
    {barrier}
    int j = last - threadIdx.x;
    if (j >= 0) y[blockIdx.x * 256 + j] = tile[j];"""
    )


UNDEFINED: dict[str, str] = {
    "control_shared_with_barrier": _reversed_through_shared("__syncthreads();"),
    "race_shared_without_barrier": _reversed_through_shared(""),
    "race_shared_with_warp_barrier": _reversed_through_shared("__syncwarp();"),
    "race_all_write_one": _kernel(
        """
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { y[0] = (float)i; y[i] = fmaxf(x[i], 0.0f); }"""
    ),
    "race_neighbour_in_global": _kernel(
        """
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
    if (i > 0 && i < n) y[i - 1] = fmaxf(x[i - 1], 0.0f) + 0.0f * y[i];"""
    ),
    "race_sum_without_atomic": _kernel(
        """
    __shared__ float sum;
    if (threadIdx.x == 0) sum = 0.0f;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    sum += 1.0f;
    __syncthreads();
    if (i < n) y[i] = sum == 256.0f ? fmaxf(x[i], 0.0f) : -1.0f;"""
    ),
    "race_between_blocks": _kernel(
        """
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = n - 1 - i;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
    if (i < n && y[j] != fmaxf(x[j], 0.0f)) y[i] = -1.0f;"""
    ),
    "memory_read_past_end": _kernel(
        """
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f) + 0.0f * fminf(fmaxf(x[i + 1], -1.0f), 1.0f);"""
    ),
    "memory_write_past_end": candidate(RELU_KERNEL.replace("i < n", "i < n + 1")),
    "memory_write_before_start": _kernel(
        """
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) y[-1] = 0.0f;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);"""
    ),
    "memory_no_check": candidate(RELU_KERNEL.replace("if (i < n) ", "")),
    "memory_far_away": candidate(RELU_KERNEL.replace("y[i] =", "y[i + (1L << 40)] =")),
    "memory_shared_past_end": _kernel(
        """
    __shared__ float tile[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) tile[threadIdx.x + 100000] = x[i];
    __syncthreads();
    if (i < n) y[i] = fmaxf(tile[threadIdx.x + 100000], 0.0f);"""
    ),
    "memory_misaligned": _kernel(
        """
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) *(float4*)(y + 1) = *(const float4*)(x + 1);
    if (i < n) y[i] = fmaxf(x[i], 0.0f);"""
    ),
    "unset_tail": candidate(RELU_KERNEL.replace("i < n", "i < n - 3")),
    "unset_shared": _kernel(
        """
    __shared__ float tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x < 128 && i < n) tile[threadIdx.x] = fmaxf(x[i], 0.0f);
    __syncthreads();
    if (i < n) y[i] = tile[threadIdx.x];"""
    ),
    "wrong_launch_too_large": candidate(
        launch="relu_kernel<<<(n + 4095) / 4096, 4096>>>(x.data_ptr<float>(), "
        "y.data_ptr<float>(), n);"
    ),
    "wrong_divergent_barrier": _kernel(
        """
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { __syncthreads(); y[i] = fmaxf(x[i], 0.0f); }"""
    ),
    "wrong_zeros": candidate(launch="cudaMemsetAsync(y.data_ptr<float>(), 0, n * 4);"),
    "wrong_sign": candidate(RELU_KERNEL.replace("fmaxf", "fminf")),
}
