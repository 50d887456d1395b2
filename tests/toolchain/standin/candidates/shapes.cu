// == row_sum
#include <torch/extension.h>
__global__ void row_sum_kernel(const float* x, float* out, int rows, int cols) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float s = 0;
  for (int c = 0; c < cols; ++c) s += x[r * cols + c];
  out[r] = s;
}
torch::Tensor row_sum(torch::Tensor x) {
  TORCH_CHECK(x.dim() == 2, "expected 2D input, got ", x.dim(), "D");
  const auto rows = x.size(0), cols = x.size(1);
  auto out = torch::empty({rows}, x.options());
  row_sum_kernel<<<(rows + 63) / 64, 64>>>(x.data_ptr<float>(), out.data_ptr<float>(), rows, cols);
  return out;
}
// == matmul_2d
#include <torch/extension.h>
__global__ void matmul_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < M && col < N) {
    float acc = 0.0f;
    for (int k = 0; k < K; ++k) acc += A[row * K + k] * B[k * N + col];
    C[row * N + col] = acc;
  }
}
torch::Tensor matmul_2d(torch::Tensor A, torch::Tensor B) {
  int M = A.size(0), K = A.size(1), N = B.size(1);
  TORCH_CHECK(B.size(0) == K, "inner dimensions differ");
  auto C = torch::zeros({M, N}, torch::TensorOptions().dtype(torch::kFloat).device(torch::kCUDA));
  dim3 block(16, 16);
  dim3 grid((N + block.x - 1) / block.x, (M + block.y - 1) / block.y);
  matmul_kernel<<<grid, block>>>(A.data_ptr<float>(), B.data_ptr<float>(), C.data_ptr<float>(), M, N, K);
  return C;
}
// == strided
#include <torch/extension.h>
__global__ void strided_kernel(const float* x, float* y, int64_t n, int64_t m, int64_t s0, int64_t s1) {
  int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n * m) y[i] = x[(i / m) * s0 + (i % m) * s1];
}
torch::Tensor strided(torch::Tensor x) {
  auto y = torch::empty(x.sizes(), x.options());
  strided_kernel<<<(x.numel() + 31) / 32, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(0), x.size(1), x.stride(0), x.strides()[1]);
  return y;
}
// == accessor_kernel
#include <torch/extension.h>
template <typename scalar_t>
__global__ void acc_kernel(const torch::PackedTensorAccessor32<scalar_t, 2, torch::RestrictPtrTraits> x,
                           torch::PackedTensorAccessor32<scalar_t, 2, torch::RestrictPtrTraits> y) {
  const int r = blockIdx.x, c = threadIdx.x;
  if (c < x.size(1)) y[c][r] = x[r][c];
}
torch::Tensor accessor_kernel(torch::Tensor x) {
  auto y = torch::empty({x.size(1), x.size(0)}, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.type(), "accessor_kernel", ([&] {
    acc_kernel<scalar_t><<<x.size(0), 32>>>(x.packed_accessor32<scalar_t, 2, torch::RestrictPtrTraits>(), y.packed_accessor32<scalar_t, 2, torch::RestrictPtrTraits>());
  }));
  return y;
}
// == several_outputs
#include <torch/extension.h>
std::vector<torch::Tensor> several_outputs(torch::Tensor x) {
  auto low = torch::zeros_like(x);
  auto high = torch::ones_like(x);
  std::vector<int64_t> shape = x.sizes().vec();
  shape.push_back(2);
  return {low, high, torch::full(shape, 3.0, x.options())};
}
// == tuple_outputs
#include <torch/extension.h>
std::tuple<at::Tensor, at::Tensor> tuple_outputs(const at::Tensor& x) {
  auto [n, m] = std::make_tuple(x.size(0), x.size(1));
  return std::make_tuple(at::zeros({n}, x.options()), at::zeros({m}, x.options().dtype(at::kLong)));
}
// == list_input
#include <torch/extension.h>
torch::Tensor list_input(std::vector<torch::Tensor> xs, std::vector<int64_t> order) {
  auto out = torch::empty({(int64_t)xs.size()}, xs[0].options());
  for (size_t i = 0; i < order.size(); i++) out.data_ptr<float>()[i] = xs[order[i]].data_ptr<float>()[0];
  return out;
}
// == conv_dims
#include <torch/extension.h>
__global__ void conv_kernel(const float* in, const float* w, float* out, int N, int C, int H, int W, int O, int K, int OH, int OW) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= N * O * OH * OW) return;
  int ow = i % OW, oh = i / OW % OH, o = i / (OW * OH) % O, n = i / (OW * OH * O);
  float s = 0;
  for (int c = 0; c < C; ++c)
    for (int a = 0; a < K; ++a)
      for (int b = 0; b < K; ++b) s += in[((n * C + c) * H + oh + a) * W + ow + b] * w[((o * C + c) * K + a) * K + b];
  out[i] = s;
}
torch::Tensor conv_dims(torch::Tensor input, torch::Tensor weight) {
  auto in_sizes = input.sizes();
  auto w_sizes = weight.sizes();
  int N = in_sizes[0], C = in_sizes[1], H = in_sizes[2], W = in_sizes[3], O = w_sizes[0], K = w_sizes[2];
  auto output = torch::empty({N, O, H - K + 1, W - K + 1}, input.options());
  int total = output.numel();
  conv_kernel<<<(total + 255) / 256, 256>>>(input.data_ptr<float>(), weight.data_ptr<float>(), output.data_ptr<float>(), N, C, H, W, O, K, H - K + 1, W - K + 1);
  return output;
}
// == reshaped
#include <torch/extension.h>
torch::Tensor reshaped(torch::Tensor x) {
  auto flat = x.contiguous().view({-1, x.size(-1)});
  auto out = torch::empty_like(flat);
  TORCH_CHECK(out.is_contiguous() && flat.dim() == 2);
  out.copy_(flat);
  return out.view(x.sizes());
}
// == workspace
#include <torch/extension.h>
__global__ void partial_kernel(const float* x, float* partial, int n, int chunk) {
  int b = blockIdx.x;
  float s = 0;
  for (int i = b * chunk; i < std::min((b + 1) * chunk, n); ++i) s += x[i];
  partial[b] = s;
}
__global__ void final_kernel(const float* partial, float* out, int n) {
  float s = 0;
  for (int i = 0; i < n; ++i) s += partial[i];
  *out = s;
}
torch::Tensor workspace(torch::Tensor x) {
  const int blocks = 4;
  auto partial = torch::empty({blocks}, x.options());
  auto out = torch::empty({}, x.options());
  partial_kernel<<<blocks, 1>>>(x.data_ptr<float>(), partial.data_ptr<float>(), x.numel(), (x.numel() + blocks - 1) / blocks);
  final_kernel<<<1, 1>>>(partial.data_ptr<float>(), out.data_ptr<float>(), blocks);
  return out;
}
// == channels_last
#include <torch/extension.h>
torch::Tensor channels_last(torch::Tensor x) {
  auto y = x.contiguous(at::MemoryFormat::ChannelsLast);
  TORCH_CHECK(y.is_contiguous(torch::MemoryFormat::ChannelsLast));
  return y;
}
