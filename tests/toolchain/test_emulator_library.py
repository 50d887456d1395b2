"""The CUDA runtime's functions and cuBLAS, as the emulator gives them."""

import ctypes

import numpy as np
import pytest

from kernelgym.toolchain.emulator import Variant

VARIANTS = pytest.mark.parametrize("variant", list(Variant), ids=str)


@pytest.fixture(scope="module")
def runtime(emulator):
    return emulator.load(
        """
        #include <cuda_runtime.h>
        #include <cuda.h>
        #include <cooperative_groups.h>
        #include <string.h>
        __global__ void twice(float* y) { y[threadIdx.x] *= 2; }
        __global__ void grid_wide(float* y) {
          y[threadIdx.x] = 1;
          cooperative_groups::this_grid().sync();
          y[32 + threadIdx.x] = y[31 - threadIdx.x] + 1;
        }

        extern "C" int copies(float* host, int n) {
          float *a, *b, *pinned;
          cudaStream_t stream;
          cudaEvent_t start, stop;
          float elapsed = -1;
          cudaStreamCreate(&stream);
          cudaEventCreate(&start);
          cudaEventCreateWithFlags(&stop, cudaEventDefault);
          cudaEventRecord(start, stream);
          cudaMalloc(&a, n * sizeof(float));
          cudaMallocAsync(&b, n * sizeof(float), stream);
          cudaMallocHost(&pinned, n * sizeof(float));
          for (int i = 0; i < n; ++i) pinned[i] = i;
          cudaMemcpyAsync(a, pinned, n * sizeof(float), cudaMemcpyHostToDevice, stream);
          twice<<<1, n, 0, stream>>>(a);
          cudaMemcpy(b, a, n * sizeof(float), cudaMemcpyDeviceToDevice);
          cudaMemset(a, 0, n * sizeof(float));
          cudaMemcpy(host, b, n * sizeof(float), cudaMemcpyDefault);
          cudaEventRecord(stop, stream);
          cudaEventSynchronize(stop);
          cudaEventElapsedTime(&elapsed, start, stop);
          cudaEventDestroy(start);
          cudaEventDestroy(stop);
          cudaStreamSynchronize(stream);
          cudaStreamDestroy(stream);
          cudaFree(a);
          cudaFreeAsync(b, stream);
          cudaFreeHost(pinned);
          return elapsed >= 0 ? cudaGetLastError() : -1;
        }

        extern "C" int device(float* host, int n) {
          cudaDeviceProp p;
          int id = -1, count = 0, sms = 0, optin = 0, blocks = 0, grid = 0, block = 0;
          cudaGetDevice(&id);
          cudaGetDeviceCount(&count);
          cudaGetDeviceProperties(&p, id);
          cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, id);
          cudaDeviceGetAttribute(&optin, cudaDevAttrMaxSharedMemoryPerBlockOptin, id);
          cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, twice, 256, 40000);
          cudaOccupancyMaxPotentialBlockSize(&grid, &block, twice, 0, 0);
          cudaFuncAttributes attributes;
          cudaFuncGetAttributes(&attributes, twice);
          const float values[] = {(float)id, (float)count, (float)p.major, (float)p.warpSize,
                                  (float)(sms == p.multiProcessorCount), (float)optin,
                                  (float)blocks, (float)block, (float)(grid / sms),
                                  (float)attributes.maxThreadsPerBlock};
          memcpy(host, values, n * sizeof(float));
          return cudaGetLastError();
        }

        extern "C" int errors(const char** texts) {
          texts[0] = cudaGetErrorString(cudaSuccess);
          twice<<<1, 2048>>>(nullptr);
          texts[1] = cudaGetErrorName(cudaPeekAtLastError());
          texts[2] = cudaGetErrorString(cudaGetLastError());
          texts[3] = cudaGetErrorName(cudaGetLastError());
          texts[4] = cudaGetErrorName(cudaSetDevice(3));
          cudaGetLastError();
          void* arguments[1] = {nullptr};
          const void* address = reinterpret_cast<const void*>(twice);
          texts[5] = cudaGetErrorName(cudaLaunchKernel(address, dim3(1), dim3(1), arguments));
          cudaGetLastError();
          float* p;
          cudaMalloc(&p, 16);
          char bytes[32] = {};
          texts[6] = cudaGetErrorName(cudaMemcpy(p, bytes, 32, cudaMemcpyHostToDevice));
          cudaGetLastError();
          return cudaFree(p);
        }

        extern "C" int cooperative(float* host, int n) {
          float* y;
          cudaMalloc(&y, n * sizeof(float));
          void* arguments[] = {&y};
          cudaLaunchCooperativeKernel((void*)grid_wide, dim3(1), dim3(32), arguments, 0, 0);
          cudaMemcpy(host, y, n * sizeof(float), cudaMemcpyDeviceToHost);
          return cudaFree(y) + cudaGetLastError();
        }
        """
    )


@VARIANTS
def test_memory_streams_and_events(emulator, runtime, variant) -> None:
    assert np.array_equal(emulator.call(runtime[variant], "copies", 64), 2 * np.arange(64))


def test_device_properties_and_occupancy(emulator, runtime) -> None:
    values = emulator.call(runtime[Variant.FAST], "device", 10)
    # 40 000 bytes of shared memory and 1 KiB of the system's: 5 blocks in 228 KiB.
    assert list(values) == [0, 1, 9, 32, 1, 227 * 1024, 5, 1024, 2, 1024]


def test_errors_are_reported_once(emulator, runtime) -> None:
    texts = (ctypes.c_char_p * 7)()
    emulator.runtime.reset()
    assert runtime[Variant.CHECKED].errors(texts) == 0
    assert [text.decode() for text in texts] == [
        "no error", "cudaErrorInvalidConfiguration", "invalid configuration argument",
        "cudaSuccess", "cudaErrorInvalidDevice", "cudaErrorInvalidDeviceFunction",
        "cudaErrorInvalidValue",
    ]  # fmt: skip
    codes = {finding.code for finding in emulator.report().findings}
    assert {"launch.configuration", "unsupported"} <= codes
    emulator.runtime.reset()


@VARIANTS
def test_a_grid_of_one_block_may_wait_for_itself(emulator, runtime, variant) -> None:
    assert list(emulator.call(runtime[variant], "cooperative", 64)) == [1] * 32 + [2] * 32


def test_launches_through_pointers_bear_the_kernel_s_name(emulator, runtime) -> None:
    emulator.call(runtime[Variant.CHECKED], "cooperative", 64)
    (launch,) = emulator.report().launches
    assert launch.kernel == "grid_wide"
    assert launch.owner == "own"


@pytest.fixture(scope="module")
def cublas(emulator):
    return emulator.load(
        """
        #include <cublas_v2.h>
        #include <cuda_bf16.h>
        template <typename T>
        struct Device {
          T* data;
          explicit Device(const T* host, int n) {
            cudaMalloc(&data, n * sizeof(T));
            if (host) cudaMemcpy(data, host, n * sizeof(T), cudaMemcpyHostToDevice);
          }
          ~Device() { cudaFree(data); }
          void to(T* host, int n) { cudaMemcpy(host, data, n * sizeof(T), cudaMemcpyDeviceToHost); }
        };
        extern "C" int sgemm(int ta, int tb, int m, int n, int k, float alpha, const float* a,
                             const float* b, float beta, float* c, int tf32) {
          cublasHandle_t handle;
          if (cublasCreate(&handle)) return -1;
          cublasSetMathMode(handle, tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH);
          Device<float> da(a, m * k), db(b, k * n), dc(c, m * n);
          int status = cublasSgemm(handle, (cublasOperation_t)ta, (cublasOperation_t)tb, m, n, k,
                                   &alpha, da.data, ta ? k : m, db.data, tb ? n : k, &beta, dc.data, m);
          dc.to(c, m * n);
          cublasDestroy(handle);
          return status;
        }
        extern "C" int batched(int m, int n, int k, int batch, const float* a, const float* b,
                               float* c) {
          cublasHandle_t handle;
          cublasCreate(&handle);
          const float one = 1, zero = 0;
          Device<float> da(a, batch * m * k), db(b, k * n), dc(nullptr, batch * m * n);
          int status = cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one,
                                                 da.data, m, (long long)m * k, db.data, k, 0, &zero,
                                                 dc.data, m, (long long)m * n, batch);
          dc.to(c, batch * m * n);
          cublasDestroy(handle);
          return status;
        }
        extern "C" int mixed(int m, int n, int k, const half* a, const half* b, float* c,
                             const __nv_bfloat16* e, const __nv_bfloat16* f, __nv_bfloat16* g) {
          cublasHandle_t handle;
          cublasCreate(&handle);
          const float one = 1, zero = 0;
          Device<half> da(a, m * k), db(b, k * n);
          Device<float> dc(nullptr, m * n);
          Device<__nv_bfloat16> de(e, m * k), df(f, k * n), dg(nullptr, m * n);
          int status = cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, da.data,
                                    CUDA_R_16F, m, db.data, CUDA_R_16F, k, &zero, dc.data,
                                    CUDA_R_32F, m, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
          status += cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, de.data,
                                 CUDA_R_16BF, m, df.data, CUDA_R_16BF, k, &zero, dg.data,
                                 CUDA_R_16BF, m, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT_TENSOR_OP);
          dc.to(c, m * n);
          dg.to(g, m * n);
          cublasDestroy(handle);
          return status;
        }
        extern "C" int vectors(int m, int n, const float* a, const float* x, float* y, float* z) {
          cublasHandle_t handle;
          cublasCreate(&handle);
          const float two = 2, one = 1;
          Device<float> da(a, m * n), dx(x, n), dy(y, m), dz(z, n);
          int status = cublasSgemv(handle, CUBLAS_OP_N, m, n, &two, da.data, m, dx.data, 1, &one,
                                   dy.data, 1);
          status += cublasSaxpy(handle, n, &two, dx.data, 1, dz.data, 1);
          status += cublasSscal(handle, n, &two, dz.data, 1);
          dy.to(y, m);
          dz.to(z, n);
          cublasDestroy(handle);
          return status;
        }
        """
    )


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def column_major(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    return np.asfortranarray(rng.normal(size=(rows, columns)), np.float32)


@pytest.mark.parametrize("transpose_a", [0, 1])
@pytest.mark.parametrize("transpose_b", [0, 1])
def test_sgemm(emulator, cublas, transpose_a, transpose_b) -> None:
    m, n, k = 13, 7, 21
    rng = np.random.default_rng(0)
    a = column_major(rng, *((k, m) if transpose_a else (m, k)))
    b = column_major(rng, *((n, k) if transpose_b else (k, n)))
    c = column_major(rng, m, n)
    expected = 0.5 * (a.T if transpose_a else a) @ (b.T if transpose_b else b) + 2 * c
    emulator.runtime.reset()
    status = cublas[Variant.FAST].sgemm(
        transpose_a, transpose_b, m, n, k, ctypes.c_float(0.5), pointer(a), pointer(b),
        ctypes.c_float(2), pointer(c), 0,
    )  # fmt: skip
    assert status == 0
    np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-5)
    report = emulator.report()
    assert report.findings == ()
    (call,) = report.launches
    assert (call.kernel, call.owner, call.flops) == ("cublasSgemm", "library", 2 * m * n * k)
    assert call.counts["dram_read_bytes"] == 4 * (m * k + k * n + m * n)
    assert call.counts["dram_write_bytes"] == 4 * m * n


def test_tf32_keeps_ten_bits(cublas) -> None:
    a = np.float32([[1 + 2**-12]])
    for tf32, expected in ((0, 1 + 2**-12), (1, 1.0)):
        c = np.zeros((1, 1), np.float32)
        one = np.ones((1, 1), np.float32)
        assert cublas[Variant.FAST].sgemm(
            0, 0, 1, 1, 1, ctypes.c_float(1), pointer(a), pointer(one), ctypes.c_float(0),
            pointer(c), tf32,
        ) == 0  # fmt: skip
        assert c[0, 0] == np.float32(expected)


def test_strided_batches_and_mixed_types(cublas) -> None:
    m, n, k, batch = 5, 4, 6, 3
    rng = np.random.default_rng(1)
    a = rng.normal(size=(batch, k, m)).astype(np.float32)  # column-major m x k, batch outermost
    b = rng.normal(size=(n, k)).astype(np.float32)
    c = np.zeros((batch, n, m), np.float32)
    library = cublas[Variant.CHECKED]
    assert library.batched(m, n, k, batch, pointer(a), pointer(b), pointer(c)) == 0
    np.testing.assert_allclose(c, b @ a, rtol=1e-5, atol=1e-6)

    half_a, half_b = a[0].astype(np.float16), b.astype(np.float16)
    brain_a, brain_b = ((x.view(np.uint32) >> 16).astype(np.uint16) for x in (a[0], b))
    c, g = np.zeros((n, m), np.float32), np.zeros((n, m), np.uint16)
    arrays = (half_a, half_b, c, brain_a, brain_b, g)
    assert library.mixed(m, n, k, *map(pointer, arrays)) == 0
    np.testing.assert_allclose(c, half_b.astype(np.float32) @ half_a.astype(np.float32), rtol=1e-5)
    wide_a, wide_b, wide_g = (
        (x.astype(np.uint32) << 16).view(np.float32) for x in (brain_a, brain_b, g)
    )
    np.testing.assert_allclose(wide_g, wide_b @ wide_a, rtol=2**-8, atol=1e-3)


def test_vectors(cublas) -> None:
    rng = np.random.default_rng(2)
    a, x, y = column_major(rng, 6, 9), rng.normal(size=9), rng.normal(size=6)
    x, y, z = x.astype(np.float32), y.astype(np.float32), np.ones(9, np.float32)
    expected = 2 * a @ x + y
    assert cublas[Variant.FAST].vectors(6, 9, *map(pointer, (a, x, y, z))) == 0
    np.testing.assert_allclose(y, expected, rtol=1e-5)
    np.testing.assert_allclose(z, 2 * (2 * x + 1), rtol=1e-6)


def test_operands_of_cublas_are_checked(emulator) -> None:
    library = emulator.load(
        """
        #include <cublas_v2.h>
        extern "C" int misuse(int unwritten) {
          cublasHandle_t handle;
          cublasCreate(&handle);
          const float one = 1, zero = 0;
          float *a, *b, *c;
          cudaMalloc(&a, 64);
          cudaMalloc(&b, 64);
          cudaMalloc(&c, 64);
          cudaMemset(a, 0, 64);
          if (!unwritten) cudaMemset(b, 0, 64);
          int k = unwritten ? 4 : 5;
          int status = cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, k, &one, a, 4, b, k,
                                   &zero, c, 4);
          cudaFree(a);
          cudaFree(b);
          cudaFree(c);
          cublasDestroy(handle);
          return status;
        }
        """
    )[Variant.CHECKED]
    for unwritten, code in ((0, "memory.out_of_bounds"), (1, "memory.uninitialised")):
        emulator.runtime.reset()
        assert library.misuse(unwritten) == (0 if unwritten else 13)
        (finding,) = emulator.report().findings
        assert finding.code == code
        assert "cublasSgemm: column" in finding.text
    emulator.runtime.reset()
