// Kernels whose memory requests can be counted by hand: see test_emulator_counts.py.
template <class T>
struct Array {  // zeros
  T* data;
  explicit Array(int n) {
    cudaMalloc(&data, n * sizeof(T));
    cudaMemset(data, 0, n * sizeof(T));
  }
  ~Array() { cudaFree(data); }
};

__global__ void coalesced(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i];
}
extern "C" void run_coalesced() {
  Array<float> x(1024), y(1024);
  coalesced<<<4, 256>>>(x.data, y.data);
}

__global__ void strided(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i * 8];
}
extern "C" void run_strided() {
  Array<float> x(8192), y(1024);
  strided<<<4, 256>>>(x.data, y.data);
}

__global__ void vectors(const float4* x, float4* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i];
}
extern "C" void run_vectors() {
  Array<float4> x(1024), y(1024);
  vectors<<<4, 256>>>(x.data, y.data);
}

extern "C" void run_misaligned() {
  Array<float> x(1025), y(1024);
  coalesced<<<4, 256>>>(x.data + 1, y.data);
}

__global__ void broadcast(const float* x, float* y) {
  y[blockIdx.x * blockDim.x + threadIdx.x] = x[0];
}
extern "C" void run_broadcast() {
  Array<float> x(1), y(1024);
  broadcast<<<4, 256>>>(x.data, y.data);
}

__global__ void tail(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}
extern "C" void run_tail() {
  Array<float> x(1000), y(1000);
  tail<<<4, 256>>>(x.data, y.data, 1000);
}

template <int kWidth>
__global__ void transpose(const float* x, float* y) {
  __shared__ float tile[32][kWidth];
  int column = threadIdx.x, row = threadIdx.y;
  tile[row][column] = x[row * 32 + column];
  __syncthreads();
  y[row * 32 + column] = tile[column][row];
}
extern "C" void run_transpose() {
  Array<float> x(1024), y(1024);
  transpose<32><<<1, dim3(32, 32)>>>(x.data, y.data);
}
extern "C" void run_transpose_padded() {
  Array<float> x(1024), y(1024);
  transpose<33><<<1, dim3(32, 32)>>>(x.data, y.data);
}

__global__ void reduction(const float* x, float* y) {
  extern __shared__ float partial[];
  int t = threadIdx.x;
  partial[t] = x[t];
  __syncthreads();
  for (int step = blockDim.x / 2; step > 0; step >>= 1) {
    if (t < step) partial[t] += partial[t + step];
    __syncthreads();
  }
  if (t == 0) y[0] = partial[0];
}
extern "C" void run_reduction() {
  Array<float> x(256), y(1);
  reduction<<<1, 256, 256 * sizeof(float)>>>(x.data, y.data);
}

__global__ void count_all(int* counter) { atomicAdd(counter, 1); }
extern "C" void run_atomics() {
  Array<int> counter(1);
  count_all<<<1, 256>>>(counter.data);
}

__global__ void histogram(const int* x, int* bins) {
  __shared__ int local[32];
  int t = threadIdx.x;
  if (t < 32) local[t] = 0;
  __syncthreads();
  atomicAdd(&local[(x[t] + t) % 4], 1);
  __syncthreads();
  if (t < 32) atomicAdd(&bins[t], local[t]);
}
extern "C" void run_histogram() {
  Array<int> x(256), bins(32);
  histogram<<<1, 256>>>(x.data, bins.data);
}

__global__ void gather(const float* x, const int* index, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[index[i]];
}
extern "C" void run_gather() {
  Array<float> x(32 * 16), y(1024);
  Array<int> index(1024);
  int host[1024];
  for (int i = 0; i < 1024; ++i) host[i] = (i % 32) * 16 + i / 64;
  cudaMemcpy(index.data, host, sizeof(host), cudaMemcpyHostToDevice);
  gather<<<4, 256>>>(x.data, index.data, y.data);
}

__global__ void matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float tile_a[16][16], tile_b[16][16];
  int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int tile = 0; tile < n; tile += 16) {
    tile_a[threadIdx.y][threadIdx.x] = a[row * n + tile + threadIdx.x];
    tile_b[threadIdx.y][threadIdx.x] = b[(tile + threadIdx.y) * n + column];
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
extern "C" void run_matmul() {
  Array<float> a(1024), b(1024), c(1024);
  matmul<<<dim3(2, 2), dim3(16, 16)>>>(a.data, b.data, c.data, 32);
}

__global__ void shared_vectors(const float4* x, float4* y, int stride) {
  __shared__ float4 staged[256];
  int t = threadIdx.x;
  staged[t * stride] = x[t];
  __syncthreads();
  y[t] = staged[t * stride];
}
extern "C" void run_shared_vectors(int stride) {
  Array<float4> x(128), y(128);
  shared_vectors<<<1, 128>>>(x.data, y.data, stride);
}

__global__ void grid_stride(const float* x, float* y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    y[i] = x[i] + 1;
  }
}
extern "C" void run_grid_stride() {
  Array<float> x(1000), y(1000);
  grid_stride<<<1, 256>>>(x.data, y.data, 1000);
}

__global__ void warp_sum(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float value = x[i];
  for (int delta = 16; delta > 0; delta /= 2) value += __shfl_down_sync(0xffffffff, value, delta);
  if (threadIdx.x % 32 == 0) y[i / 32] = value;
}
extern "C" void run_warp_sum() {
  Array<float> x(1024), y(32);
  warp_sum<<<4, 256>>>(x.data, y.data);
}

__global__ void branches(const float* x, float* even, float* odd) {
  int t = threadIdx.x;
  if (t % 2 == 0) {
    even[t / 2] = x[t];
  } else {
    odd[t / 2] = 1;
  }
}
extern "C" void run_branches() {
  Array<float> x(64), even(32), odd(32);
  branches<<<1, 64>>>(x.data, even.data, odd.data);
}

__global__ void bytes(const unsigned char* x, unsigned char* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i];
}
extern "C" void run_bytes() {
  Array<unsigned char> x(1024), y(1024);
  bytes<<<4, 256>>>(x.data, y.data);
}

__global__ void halves(const __half2* x, __half2* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __half2 value = x[i];
  y[i] = __hadd2(value, value);
}
extern "C" void run_halves() {
  Array<__half2> x(1024), y(1024);
  halves<<<4, 256>>>(x.data, y.data);
}

__global__ void twice(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x] * 2; }
__global__ void add_one(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x] + 1; }
__global__ void twice_add_one(const float* x, float* y) {
  y[threadIdx.x] = x[threadIdx.x] * 2;
  y[threadIdx.x] = y[threadIdx.x] + 1;
}
extern "C" void run_two_kernels() {
  Array<float> x(256), t(256), y(256);
  twice<<<1, 256>>>(x.data, t.data);
  add_one<<<1, 256>>>(t.data, y.data);
}
extern "C" void run_fused() {
  Array<float> x(256), y(256);
  twice_add_one<<<1, 256>>>(x.data, y.data);
}
