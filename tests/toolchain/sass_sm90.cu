// sass_sm90.txt: nvcc -cubin -arch=sm_90 (13.0.88), then nvdisasm -c (13.5.37).
#include <cuda_fp16.h>
#include <mma.h>
#include <cuda_pipeline.h>
using namespace nvcuda;
__global__ void copy4(const float4* x, float4* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}
template <typename T>
__global__ void scale(const T* x, T* y, T a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] * a;
}
template __global__ void scale<double>(const double*, double*, double);
__global__ void tensor(const half* a, const half* b, float* c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0.f);
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, b, 16);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}
__global__ void indexed(const float* x, float* y, int k) {
    float kept[64];
#pragma unroll 1
    for (int i = 0; i < 64; i++) kept[(i * k) & 63] = x[i * 32 + threadIdx.x];
    y[threadIdx.x] = __reduce_add_sync(~0u, atomicAdd((int*)y, 1)) + kept[k & 63];
}
__global__ void staged(const float4* x, float4* y) {
    __shared__ float4 s[256];
    __pipeline_memcpy_async(&s[threadIdx.x], &x[threadIdx.x], 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    y[threadIdx.x] = s[255 - threadIdx.x];
}
