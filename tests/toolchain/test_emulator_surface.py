"""The CUDA language as the emulator's headers give it: kernels that compute numbers."""

import ctypes
import math

import numpy as np
import pytest

from kernelgym.toolchain.emulator import Variant

VARIANTS = pytest.mark.parametrize("variant", list(Variant), ids=str)


@pytest.fixture(scope="module")
def language(emulator):
    return emulator.load(
        """
        #include <cuda_runtime.h>
        #include <cuda_fp16.h>

        __constant__ float coefficients[4] = {1, 2, 3, 4};
        __device__ float counter;

        template <typename T, int N>
        __device__ __forceinline__ T scaled(T x) { return x * T(N); }

        template <typename T, int N, typename F>
        __global__ void __launch_bounds__(256) apply(T* __restrict__ y, int n, F f) {
          int i = blockIdx.x * blockDim.x + threadIdx.x;
          if (i >= n) return;
          y[i] = scaled<T, N>(f(i));
        }
        extern "C" int templates(float* host, int n) {
          float* y;
          cudaMalloc(&y, n * sizeof(float));
          const float offset = 0.5f;
          auto f = [=] __device__(int i) { return i + offset; };
          apply<float, 3><<<(n + 31) / 32, 32>>>(y, n, f);
          cudaMemcpy(host, y, n * sizeof(float), cudaMemcpyDeviceToHost);
          return cudaFree(y) + cudaGetLastError();
        }

        __global__ void grid3(float* y) {
          int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
          int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
          int size = blockDim.x * blockDim.y * blockDim.z;
          y[block * size + thread] = 100 * block + thread;
        }
        KERNEL_ENTRY(grids, grid3, dim3(2, 3, 4), dim3(4, 2, 2))

        __global__ void shared(float* y) {
          __shared__ float plain[64];
          __shared__ half halves[8][8];
          __shared__ __align__(16) float4 vectors[16], one;
          int t = threadIdx.x;
          plain[t] = t;
          halves[t / 8][t % 8] = __float2half(2.0f * t);
          if (t < 16) vectors[t] = make_float4(t, 0, 0, -t);
          if (t == 0) one = make_float4(1, 2, 3, 4);
          __syncthreads();
          y[t] = plain[63 - t] + __half2float(halves[t % 8][t / 8]) + vectors[t / 4].w + one.z;
        }
        KERNEL_ENTRY(static_shared, shared, 2, 64)

        extern __shared__ float everywhere[];
        template <typename T>
        __global__ void dynamic(T* y) {
          extern __shared__ __align__(16) unsigned char raw[];
          T* cells = reinterpret_cast<T*>(raw);
          cells[threadIdx.x] = threadIdx.x;
          __syncthreads();
          y[threadIdx.x] = cells[31 - threadIdx.x] + everywhere[0] + *(everywhere + 1);
        }
        extern "C" int dynamic_shared(float* host, int n) {
          float* y;
          cudaMalloc(&y, n * sizeof(float));
          auto kernel = dynamic<float>;
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000);
          kernel<<<1, 32, 100000>>>(y);
          int error = cudaGetLastError();
          cudaMemcpy(host, y, n * sizeof(float), cudaMemcpyDeviceToHost);
          cudaFree(y);
          return error;
        }

        __global__ void barriers(float* y) {
          int t = threadIdx.x;
          y[3 * t] = __syncthreads_count(t % 3 == 0);
          y[3 * t + 1] = __syncthreads_and(t < 63);
          y[3 * t + 2] = __syncthreads_or(t == 5);
        }
        KERNEL_ENTRY(counting_barriers, barriers, 1, 64)

        __global__ void symbols(float* y) {
          y[threadIdx.x] = coefficients[threadIdx.x];
          if (threadIdx.x == 0) counter += 1;
        }
        extern "C" int symbol_copies(float* host, int n) {
          float* y;
          cudaMalloc(&y, n * sizeof(float));
          const float values[2] = {30, 40};
          float zero = 0;
          cudaMemcpyToSymbol(coefficients, values, sizeof values, 2 * sizeof(float));
          cudaMemcpyToSymbol(counter, &zero, sizeof zero);
          symbols<<<1, 4>>>(y);
          symbols<<<1, 4>>>(y);
          cudaMemcpy(host, y, 4 * sizeof(float), cudaMemcpyDeviceToHost);
          cudaMemcpyFromSymbol(host + 4, counter, sizeof(float));
          return cudaFree(y);
        }

        __global__ void copies(float* y) {
          float f = threadIdx.x + 0.25f;
          unsigned bits;
          memcpy(&bits, &f, sizeof bits);
          y[threadIdx.x] = __uint_as_float(bits);
          __syncthreads();
          if (threadIdx.x == 0) {
            memcpy(y + 8, y, 8 * sizeof(float));
            std::memset(y, 0, 4 * sizeof(float));
          }
        }
        KERNEL_ENTRY(memory_functions, copies, 1, 8)

        struct Kernels {
          static __global__ void set(float* y, float value) { y[threadIdx.x] = value; }
        };
        #define LAUNCH(kernel, ...) kernel<<<1, 4>>>(__VA_ARGS__)
        extern "C" int launches(float* host, int n) {
          float* y;
          cudaMalloc(&y, n * sizeof(float));
          int evaluated = 0;
          auto next = [&] { return static_cast<float>(++evaluated); };
          void (*pointer)(float*, float) = Kernels::set;
          LAUNCH(Kernels::set, y, next());
          pointer<<<1, 4>>>(y + 4, next());
          (*pointer)<<<dim3(1), dim3(4, 1), 0, (cudaStream_t)0>>>(y + 8, next());
          float* at = y + 12;
          float value = next();
          void* arguments[] = {&at, &value};
          cudaLaunchKernel((void*)Kernels::set, dim3(1), dim3(4), arguments, 0, 0);
          cudaLaunchConfig_t configuration = {};
          configuration.gridDim = 1;
          configuration.blockDim = 4;
          cudaLaunchKernelEx(&configuration, Kernels::set, y + 16, 5);
          cudaMemcpy(host, y, n * sizeof(float), cudaMemcpyDeviceToHost);
          cudaFree(y);
          return evaluated == 4 ? cudaGetLastError() : -1;
        }
        """
    )


@VARIANTS
def test_templates_and_lambdas(emulator, language, variant) -> None:
    values = emulator.call(language[variant], "templates", 100)
    assert np.array_equal(values, 3 * (np.arange(100) + 0.5))


@VARIANTS
def test_grids_of_three_dimensions(emulator, language, variant) -> None:
    values = emulator.call(language[variant], "grids", 384)
    block, thread = np.divmod(np.arange(384), 16)
    assert np.array_equal(values, 100 * block + thread)


@VARIANTS
def test_static_shared_memory_of_class_types(emulator, language, variant) -> None:
    values = emulator.call(language[variant], "static_shared", 64)
    t = np.arange(64)
    assert np.array_equal(values, (63 - t) + 2 * (t % 8 * 8 + t // 8) - t // 4 + 3)


@VARIANTS
def test_dynamic_shared_memory(emulator, language, variant) -> None:
    values = emulator.call(language[variant], "dynamic_shared", 32)
    assert np.array_equal(values, 31 - np.arange(32) + 0 + 1)


@VARIANTS
def test_barriers_that_count(emulator, language, variant) -> None:
    values = emulator.call(language[variant], "counting_barriers", 192).reshape(64, 3)
    assert np.array_equal(values, np.tile([22, 0, 1], (64, 1)))


@VARIANTS
def test_constant_and_device_variables(emulator, language, variant) -> None:
    assert list(emulator.call(language[variant], "symbol_copies", 5)) == [1, 2, 30, 40, 2]


@VARIANTS
def test_memcpy_and_memset_in_kernels(emulator, language, variant) -> None:
    values = emulator.call(language[variant], "memory_functions", 16)
    first = np.arange(8) + 0.25
    assert np.array_equal(values, np.concatenate([np.where(np.arange(8) < 4, 0, first), first]))


@VARIANTS
def test_spellings_of_a_launch(emulator, language, variant) -> None:
    values = emulator.call(language[variant], "launches", 20)
    assert np.array_equal(values, np.repeat([1, 2, 3, 4, 5], 4))


@pytest.fixture(scope="module")
def warps(emulator):
    return emulator.load(
        """
        #include <cuda_runtime.h>
        #include <cuda_fp16.h>
        #include <cooperative_groups.h>
        #include <cooperative_groups/reduce.h>
        #include <cooperative_groups/scan.h>
        namespace cg = cooperative_groups;
        #define FULL 0xffffffffu

        __global__ void shuffles(float* y) {
          int t = threadIdx.x;
          float* row = y + 12 * t;
          row[0] = __shfl_sync(FULL, (float)t, 5);
          row[1] = __shfl_sync(FULL, t, t + 1, 8);
          row[2] = __shfl_up_sync(FULL, t, 3);
          row[3] = __shfl_up_sync(FULL, (double)t, 2, 16);
          row[4] = __shfl_down_sync(FULL, (long long)t, 4);
          row[5] = __shfl_down_sync(FULL, t, 1, 4);
          row[6] = __shfl_xor_sync(FULL, (unsigned)t, 9);
          row[7] = __half2float(__shfl_xor_sync(FULL, __float2half((float)t), 1));
          row[8] = __low2float(__shfl_down_sync(FULL, __floats2half2_rn(t, 0), 16));
          float sum = t;
          for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(FULL, sum, offset);
          row[9] = sum;
          row[10] = __popc(__activemask());
          row[11] = __shfl_xor_sync(FULL, t, 8, 8);
        }
        KERNEL_ENTRY(shuffle, shuffles, 1, 32)

        __global__ void votes(float* y) {
          int t = threadIdx.x;
          float* row = y + 12 * t;
          row[0] = __any_sync(FULL, t == 7);
          row[1] = __all_sync(FULL, t < 31);
          row[2] = __popc(__ballot_sync(FULL, t % 4 == 1));
          row[3] = __popc(__match_any_sync(FULL, t % 5));
          int all;
          row[4] = __popc(__match_all_sync(FULL, 3.5, &all)) + 100 * all;
          row[5] = __reduce_add_sync(FULL, t);
          row[6] = __reduce_min_sync(FULL, t - 40);
          row[7] = __reduce_max_sync(FULL, (unsigned)t);
          row[8] = __reduce_or_sync(FULL, 1u << (t % 3));
          row[9] = __reduce_and_sync(FULL, 12u | (t & 1));
          row[10] = __reduce_xor_sync(FULL, (unsigned)t);
          if (t < 8) row[11] = __reduce_add_sync(0xffu, 1);
          __syncwarp();
        }
        KERNEL_ENTRY(vote, votes, 1, 32)

        struct Pair { double value; int index; int pad; };
        __global__ void groups(float* y) {
          cg::thread_block block = cg::this_thread_block();
          auto warp = cg::tiled_partition<32>(block);
          auto tile = cg::tiled_partition<8>(warp);
          cg::thread_group any = block;
          int t = block.thread_rank();
          float* row = y + 16 * t;
          row[0] = warp.thread_rank() + 100 * warp.meta_group_rank() + 1000 * warp.meta_group_size();
          row[1] = tile.size() + 10 * tile.meta_group_rank() + 100 * tile.meta_group_size();
          row[2] = cg::reduce(tile, t, cg::plus<int>());
          row[3] = cg::reduce(warp, (float)t, cg::greater<float>());
          row[4] = cg::reduce(warp, t, [](int a, int b) { return a < b ? a : b; });
          row[5] = tile.shfl(t, 3);
          row[6] = tile.shfl_down(t, 1);
          row[7] = tile.shfl_up(t, 2);
          row[8] = tile.shfl_xor(t, 1);
          row[9] = tile.ballot(tile.thread_rank() > 5);
          row[10] = tile.any(t == 9) + 2 * tile.all(t < 8);
          row[11] = cg::inclusive_scan(tile, 1);
          row[12] = cg::exclusive_scan(warp, 1, cg::plus<int>());
          Pair best = {t * 0.5, t, 0};
          row[13] = warp.shfl(best, 31).index;
          any.sync();
          if (t % 2 == 1) {
            auto odd = cg::coalesced_threads();
            row[14] = odd.size() + 100 * odd.thread_rank();
          }
          cg::sync(block);
          row[15] = cg::this_grid().size();
        }
        KERNEL_ENTRY(group, groups, 1, 64)
        """
    )


@VARIANTS
def test_shuffles(emulator, warps, variant) -> None:
    rows = emulator.call(warps[variant], "shuffle", 32 * 12).reshape(32, 12)
    t = np.arange(32)
    expected = [
        np.full(32, 5),
        t // 8 * 8 + (t + 1) % 8,
        np.where(t >= 3, t - 3, t),
        np.where(t % 16 >= 2, t - 2, t),
        np.where(t + 4 < 32, t + 4, t),
        np.where(t % 4 < 3, t + 1, t),
        t ^ 9,
        t ^ 1,
        np.where(t < 16, t + 16, t),
        np.full(32, 496),
        np.full(32, 32),
        np.where(t % 16 < 8, t, t - 8),
    ]
    assert np.array_equal(rows, np.stack(expected, axis=1))


@VARIANTS
def test_votes_matches_and_reductions(emulator, warps, variant) -> None:
    rows = emulator.call(warps[variant], "vote", 32 * 12).reshape(32, 12)
    t = np.arange(32)
    ones = np.ones(32)
    columns = [ones, 0 * ones, 8 * ones, np.where(t % 5 < 2, 7, 6), 132 * ones, 496 * ones]
    columns += [-40 * ones, 31 * ones, 7 * ones, 12 * ones, 0 * ones, np.where(t < 8, 8, 0)]
    assert np.array_equal(rows, np.stack(columns, axis=1))


@VARIANTS
def test_cooperative_groups(emulator, warps, variant) -> None:
    rows = emulator.call(warps[variant], "group", 64 * 16).reshape(64, 16)
    t = np.arange(64)
    tile, rank = t // 8 * 8, t % 8
    expected = [
        t % 32 + 100 * (t // 32) + 2000,
        8 + 10 * (t % 32 // 8) + 400,
        8 * tile + 28,
        t // 32 * 32 + 31,
        t // 32 * 32,
        tile + 3,
        np.where(rank < 7, t + 1, t),
        np.where(rank >= 2, t - 2, t),
        t ^ 1,
        np.full(64, 0b11000000),
        np.where(t // 8 == 1, 1, np.where(t < 8, 2, 0)),
        rank + 1,
        t % 32,
        t // 32 * 32 + 31,
        np.where(t % 2 == 1, 16 + 100 * (t % 32 // 2), 0),
        np.full(64, 64),
    ]
    assert np.array_equal(rows, np.stack(expected, axis=1))


@pytest.fixture(scope="module")
def atomics(emulator):
    return emulator.load(
        """
        #include <cuda_runtime.h>
        #include <cuda_fp16.h>
        #include <cuda_bf16.h>
        __device__ int i; __device__ unsigned u; __device__ unsigned long long l;
        __device__ double d; __device__ half h; __device__ half2 h2; __device__ __nv_bfloat16 b;
        __global__ void reset() {
          i = 0; u = 0; l = 0; d = 0;
          h = __float2half(0); h2 = __floats2half2_rn(0, 0); b = __float2bfloat16(0);
        }
        __device__ float atomicMaxFloat(float* address, float value) {
          int* bits = reinterpret_cast<int*>(address);
          int old = *bits, assumed;
          do {
            assumed = old;
            old = atomicCAS(bits, assumed, __float_as_int(fmaxf(value, __int_as_float(assumed))));
          } while (assumed != old);
          return __int_as_float(old);
        }
        __global__ void add(float* y) {
          int t = blockIdx.x * blockDim.x + threadIdx.x;
          atomicAdd(y, 1);
          atomicAdd(&i, -1);
          atomicSub(&u, 1u);
          atomicAdd(&l, 1ull << 40);
          atomicAdd(&d, 0.5);
          atomicAdd(&h, __float2half(0.5f));
          atomicAdd(&h2, __floats2half2_rn(1, 2));
          atomicAdd(&b, __float2bfloat16(1));
          atomicMaxFloat(y + 1, t * 0.5f);
        }
        __global__ void others(float* y) {
          __shared__ int s[8];
          __shared__ unsigned w[2];
          int t = threadIdx.x;
          if (t < 8) s[t] = t == 2 ? -1 : t == 1 ? 1000 : 0;
          if (t < 2) w[t] = 0;
          __syncthreads();
          atomicMax(s, t);
          atomicMin(s + 1, t);
          atomicAnd(s + 2, ~(1 << (t % 32)));
          atomicOr_block(s + 3, 1 << (t % 4));
          atomicXor(s + 4, t);
          atomicExch(s + 5, 7);
          if (atomicCAS(s + 6, 0, t + 1) == 0) s[7] = 1;
          atomicInc(w, 9);
          atomicDec_system(w + 1, 9);
          __syncthreads();
          if (t < 8) y[10 + t] = t == 6 ? s[t] > 0 : s[t];
          if (t < 2) y[18 + t] = w[t];
        }
        __global__ void collect(float* y) {
          y[2] = i; y[3] = u == 0u - 64u; y[4] = l >> 40; y[5] = d; y[6] = __half2float(h);
          y[7] = __low2float(h2); y[8] = __high2float(h2); y[9] = __bfloat162float(b);
        }
        extern "C" int atomics(float* host, int n) {
          float* y;
          cudaMalloc(&y, n * sizeof(float));
          cudaMemsetAsync(y, 0, n * sizeof(float), 0);
          reset<<<1, 1>>>();
          add<<<2, 32>>>(y);
          others<<<1, 64>>>(y);
          collect<<<1, 1>>>(y);
          cudaMemcpyAsync(host, y, n * sizeof(float), cudaMemcpyDeviceToHost, 0);
          return cudaFree(y) + cudaGetLastError();
        }
        """
    )


@VARIANTS
def test_atomics(emulator, atomics, variant) -> None:
    values = emulator.call(atomics[variant], "atomics", 20)
    expected = [64, 31.5, -64, 1, 64, 32, 32, 64, 128, 64, 63, 0, 0, 15, 0, 7, 1, 1, 4, 6]
    assert list(values) == expected


@pytest.fixture(scope="module")
def vectors(emulator):
    return emulator.load(
        """
        #include <cuda_runtime.h>
        __global__ void vectorized(float* y) {
          const float4* source = reinterpret_cast<const float4*>(y);
          float4 v = source[threadIdx.x];
          float4 w = {v.x + v.y + v.z + v.w, 1, 2, 3};
          reinterpret_cast<float4*>(y)[32 + threadIdx.x] = w;
          float2 p = __ldg(reinterpret_cast<const float2*>(y) + threadIdx.x);
          reinterpret_cast<float2*>(y)[128 + threadIdx.x] = make_float2(p.x - 1, p.y + 1);
          double2 d = {threadIdx.x * 1.0, 2.0};
          reinterpret_cast<double2*>(y)[80 + threadIdx.x] = d;
          float3 t = reinterpret_cast<float3*>(y)[threadIdx.x];
          reinterpret_cast<float3*>(y + 448)[threadIdx.x] = t;
          uchar4 c = make_uchar4(1, 2, 3, threadIdx.x);
          reinterpret_cast<uchar4*>(y + 544)[threadIdx.x] = c;
        }
        KERNEL_ENTRY(vectors, vectorized, 1, 32)
        """
    )


@VARIANTS
def test_vector_types(emulator, vectors, variant) -> None:
    values = emulator.call(vectors[variant], "vectors", 576)
    assert np.array_equal(values[128:256].reshape(32, 4), np.tile([0, 1, 2, 3], (32, 1)))
    assert np.array_equal(values[256:320].reshape(32, 2), np.tile([-1, 1], (32, 1)))
    doubles = values[320:448].view(np.float64).reshape(32, 2)
    assert np.array_equal(doubles, np.stack([np.arange(32), np.full(32, 2)], axis=1))
    bytes_ = values[544:].view(np.uint8).reshape(32, 4)
    assert np.array_equal(bytes_[:, 3], np.arange(32))


def test_a_vector_is_accessed_as_a_whole(emulator, vectors) -> None:
    emulator.call(vectors[Variant.CHECKED], "vectors", 576)
    (launch,) = emulator.report().launches
    # Loads: float4, float2, and the three members of float3.
    assert launch.counts["global_load_requests"] == 1 + 1 + 3
    # Stores: float4, float2, double2, the three members of float3, uchar4.
    assert launch.counts["global_store_requests"] == 1 + 1 + 1 + 3 + 1
    assert launch.counts["global_load_bytes"] == 32 * (16 + 8 + 12)


def test_printf_assert_and_trap(emulator) -> None:
    libraries = emulator.load(
        """
        #include <cassert>
        #include <cstdio>
        __global__ void talk(float* y) {
          if (threadIdx.x == 3) printf("thread %d has %.2f\\n", threadIdx.x, 1.5);
          y[threadIdx.x] = clock64() > 0;
        }
        KERNEL_ENTRY(talks, talk, 1, 8)
        __global__ void check(float* y) { assert(threadIdx.x < 5); y[threadIdx.x] = 1; }
        KERNEL_ENTRY(checks, check, 1, 8)
        __global__ void stop(float* y) { if (threadIdx.x == 2) __trap(); }
        KERNEL_ENTRY(stops, stop, 1, 8)
        """
    )
    for library in libraries.values():
        assert np.array_equal(emulator.call(library, "talks", 8), np.ones(8))
        assert emulator.report().printf == "thread 3 has 1.50\n"
        buffer = (ctypes.c_float * 8)()
        for name, error, code in (("checks", 710, "assert"), ("stops", 719, "trap")):
            emulator.runtime.reset()
            assert library[name](buffer, 8) == error
            (finding,) = emulator.report().findings
            assert finding.code == code
        emulator.runtime.reset()


def test_findings_name_the_line_of_the_source(emulator) -> None:
    library = emulator.load(
        """
        template <typename T>
        __device__ __forceinline__ T read(const T* p) {
          return __ldg(p);  // read here
        }
        __global__ void reach(float* y) {
          y[threadIdx.x] = read(y + threadIdx.x + 1);
        }
        KERNEL_ENTRY(reads, reach, 1, 8)
        __global__ void reach_atomically(float* y) {
          atomicAdd(y + threadIdx.x + 1, 1);  // added here
        }
        KERNEL_ENTRY(adds, reach_atomically, 1, 8)
        """
    )[Variant.CHECKED]
    lines = (emulator.folder / f"module{emulator.count}.cu").read_text().splitlines()
    for name, source in (("reads", "read here"), ("adds", "added here")):
        emulator.runtime.reset()
        assert library[name]((ctypes.c_float * 64)(), 8) == 700
        (finding,) = [f for f in emulator.report().findings if f.code == "memory.out_of_bounds"]
        assert source in lines[finding.line - 1]
        assert finding.tool == "emulator"
        assert "kernel reach" in finding.text
    emulator.runtime.reset()


def test_math_constants_reach_kernels(emulator) -> None:
    library = emulator.load(
        """
        #include <math_constants.h>
        __global__ void constants(float* y) { y[0] = CUDART_PI_F; y[1] = -CUDART_INF_F; y[2] = M_PI; }
        KERNEL_ENTRY(constant, constants, 1, 1)
        """
    )[Variant.FAST]
    values = emulator.call(library, "constant", 3)
    assert list(values) == [np.float32(math.pi), -math.inf, np.float32(math.pi)]
