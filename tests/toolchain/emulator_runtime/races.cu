// Correct kernels, each with a twin that lacks one thing: see test_races.py. Thread counts are small,
// patterns are those of real programs. `kBroken` leaves the synchronisation out.
template <class T>
struct Array {  // zeros
  T* data;
  explicit Array(int n) {
    cudaMalloc(&data, n * sizeof(T));
    cudaMemset(data, 0, n * sizeof(T));
  }
  ~Array() { cudaFree(data); }
};

#define ENTRY(name, ...)                                   \
  extern "C" void correct_##name() { name<false>(__VA_ARGS__); } \
  extern "C" void broken_##name() { name<true>(__VA_ARGS__); }

template <bool kBroken>
__global__ void tree(const float* x, float* y) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = x[t];
  __syncthreads();
  for (int step = 128; step > 32; step /= 2) {
    if (t < step) s[t] += s[t + step];
    __syncthreads();
  }
  if (t < 32) {  // within one warp
    float value = s[t] + s[t + 32];
    for (int step = 16; step > 0; step /= 2) {
      s[t] = value;
      if (!kBroken) __syncwarp();
      value += s[(t + step) % 32];
      if (!kBroken) __syncwarp();
    }
    if (t == 0) y[0] = value;
  }
}
template <bool kBroken>
void run_tree() {
  Array<float> x(256), y(1);
  tree<kBroken><<<1, 256>>>(x.data, y.data);
}
ENTRY(run_tree)

// Two tiles in turn: one barrier a step is enough.
template <bool kBroken>
__global__ void double_buffered(const float* a, const float* b, float* c, int n) {
  __shared__ float as[2][8][8], bs[2][8][8];
  int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 8 + ty, column = blockIdx.x * 8 + tx;
  as[0][ty][tx] = a[row * n + tx];
  bs[0][ty][tx] = b[ty * n + column];
  float sum = 0;
  for (int tile = 0, now = 0; tile < n; tile += 8, now ^= 1) {
    if (!kBroken) __syncthreads();
    if (tile + 8 < n) {
      as[now ^ 1][ty][tx] = a[row * n + tile + 8 + tx];
      bs[now ^ 1][ty][tx] = b[(tile + 8 + ty) * n + column];
    }
    for (int k = 0; k < 8; ++k) sum += as[now][ty][k] * bs[now][k][tx];
  }
  c[row * n + column] = sum;
}
template <bool kBroken>
void run_double_buffered() {
  Array<float> a(1024), b(1024), c(1024);
  double_buffered<kBroken><<<dim3(4, 4), dim3(8, 8)>>>(a.data, b.data, c.data, 32);
}
ENTRY(run_double_buffered)

// Hillis and Steele: read, barrier, write, barrier.
template <bool kBroken>
__global__ void scan(const int* x, int* y) {
  extern __shared__ int sums[];
  int t = threadIdx.x;
  sums[t] = x[t];
  __syncthreads();
  for (int step = 1; step < blockDim.x; step *= 2) {
    int left = t >= step ? sums[t - step] : 0;
    if (!kBroken) __syncthreads();
    sums[t] += left;
    __syncthreads();
  }
  y[t] = sums[t];
}
template <bool kBroken>
void run_scan() {
  Array<int> x(128), y(128);
  int ones[128];
  for (int& one : ones) one = 1;
  cudaMemcpy(x.data, ones, sizeof(ones), cudaMemcpyHostToDevice);
  scan<kBroken><<<1, 128, 128 * sizeof(int)>>>(x.data, y.data);
}
ENTRY(run_scan)

template <bool kBroken>
__global__ void histogram(const int* x, int* bins, int n) {
  __shared__ int local[16];
  if (threadIdx.x < 16) local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    int bin = (x[i] + i) % 16;
    if (kBroken) {
      local[bin] += 1;
    } else {
      atomicAdd(&local[bin], 1);
    }
  }
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}
template <bool kBroken>
void run_histogram() {
  Array<int> x(1000), bins(16);
  histogram<kBroken><<<3, 64>>>(x.data, bins.data, 1000);
}
ENTRY(run_histogram)

// The block that comes last adds up what all have written; the fence publishes it.
template <bool kBroken>
__global__ void last_block(const float* x, float* partial, unsigned* done, float* y) {
  __shared__ bool last;
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * 64 + t] + 1;
  __syncthreads();
  if (t == 0) {
    float sum = 0;
    for (int i = 0; i < 64; ++i) sum += s[i];
    partial[blockIdx.x] = sum;
    if (!kBroken) __threadfence();
    last = atomicAdd(done, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && t == 0) {
    float sum = 0;
    for (int i = 0; i < gridDim.x; ++i) sum += partial[i];
    y[0] = sum;
  }
}
template <bool kBroken>
void run_last_block() {
  Array<float> x(512), partial(8), y(1);
  Array<unsigned> done(1);
  last_block<kBroken><<<8, 64>>>(x.data, partial.data, done.data, y.data);
}
ENTRY(run_last_block)

// A maximum of floats by compare-and-swap, whose first read is a plain one; or by plain writes.
template <bool kBroken>
__global__ void maximum(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float value = x[i] + i;
  if (kBroken) {
    if (value > y[0]) y[0] = value;
    return;
  }
  int* bits = reinterpret_cast<int*>(y);
  int old = *bits, assumed;
  do {
    assumed = old;
    if (__int_as_float(assumed) >= value) break;
    old = atomicCAS(bits, assumed, __float_as_int(value));
  } while (old != assumed);
}
template <bool kBroken>
void run_maximum() {
  Array<float> x(200), y(1);
  maximum<kBroken><<<4, 64>>>(x.data, y.data, 200);
}
ENTRY(run_maximum)

// Everybody raises the same flag: harmless. Everybody writes its own number: not.
template <bool kBroken>
__global__ void flag(int* found) {
  __shared__ int any;
  any = kBroken ? threadIdx.x : 1;
  __syncthreads();
  found[0] = any;
}
template <bool kBroken>
void run_flag() {
  Array<int> found(1);
  flag<kBroken><<<2, 64>>>(found.data);
}
ENTRY(run_flag)

// In place, each thread its own element; or its neighbour's, in the next block.
template <bool kBroken>
__global__ void in_place(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n - 1) x[i] = x[kBroken ? i + 1 : i] * 2 + 1;
}
template <bool kBroken>
void run_in_place() {
  Array<float> x(256);
  in_place<kBroken><<<4, 64>>>(x.data, 256);
}
ENTRY(run_in_place)

// Neighbouring halves and bytes share words: no race between them.
template <bool kBroken>
__global__ void narrow(__half* y, unsigned char* z) {
  __shared__ __half halves[64];
  __shared__ unsigned char bytes[64];
  int t = threadIdx.x;
  halves[t] = __float2half(t);
  bytes[kBroken ? t / 2 : t] = t;
  if (kBroken) bytes[t / 2 + 32] = 0;
  __syncthreads();
  y[t] = halves[63 - t];
  z[t] = bytes[63 - t];
}
template <bool kBroken>
void run_narrow() {
  Array<__half> y(64);
  Array<unsigned char> z(64);
  narrow<kBroken><<<1, 64>>>(y.data, z.data);
}
ENTRY(run_narrow)

// Softmax of a row: block reductions by shuffles, whose results are reused through shared memory.
__device__ float warp_sum(float value) {
  for (int delta = 16; delta > 0; delta /= 2) value += __shfl_down_sync(0xffffffff, value, delta);
  return value;
}
template <bool kBroken>
__global__ void normalise(const float* x, float* y, int columns) {
  __shared__ float sums[32];
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(x[blockIdx.x * columns + i]);
  sum = warp_sum(sum);
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    sum = warp_sum(lane < blockDim.x / 32 ? sums[lane] : 0.0f);
    if (lane == 0) sums[0] = sum;
  }
  if (!kBroken) __syncthreads();
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    y[blockIdx.x * columns + i] = expf(x[blockIdx.x * columns + i]) / sums[0];
  }
}
template <bool kBroken>
void run_normalise() {
  Array<float> x(3 * 200), y(3 * 200);
  normalise<kBroken><<<3, 128>>>(x.data, y.data, 200);
}
ENTRY(run_normalise)
