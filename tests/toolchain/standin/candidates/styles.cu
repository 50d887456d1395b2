// == auto_everything
#include <torch/extension.h>
auto auto_everything(const torch::Tensor& x) -> torch::Tensor {
  const auto opts = x.options().dtype(torch::kFloat32).requires_grad(false);
  const auto out = torch::empty({x.numel(), 1}, opts);
  auto* p = out.data_ptr<float>();
  for (auto i = decltype(x.numel()){0}; i < x.numel(); ++i) p[i] = static_cast<float>(i);
  return out;
}
// == namespaces
#include <torch/extension.h>
namespace mine {
namespace {
constexpr int kThreads = 128;
template <typename T, int UNROLL>
struct Op { __host__ __device__ T operator()(T a) const { return a * T(UNROLL); } };
template <typename T, typename F>
__global__ void apply(const T* x, T* y, int n, F f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = f(x[i]);
}
}  // namespace
inline int div_up(int a, int b) { return (a + b - 1) / b; }
}  // namespace mine
torch::Tensor namespaces(torch::Tensor x) {
  using namespace mine;
  auto y = torch::empty_like(x);
  apply<<<div_up(x.numel(), kThreads), kThreads>>>((const float*)x.data_ptr<float>(), y.data_ptr<float>(), (int)x.numel(), Op<float, 3>());
  return y;
}
// == using_torch
#include <torch/torch.h>
using namespace torch;
Tensor using_torch(Tensor x) {
  Tensor y = zeros({2, 2}, TensorOptions(kFloat32).device(x.device()));
  y.fill_(x.size(0));
  return y;
}
// == using_at
#include <ATen/ATen.h>
using at::Tensor;
using at::IntArrayRef;
int64_t using_at(const Tensor& x, IntArrayRef dims) {
  int64_t n = 1;
  for (const auto d : dims) n *= x.size(d);
  return n;
}
// == cpp_headers
#include <torch/extension.h>
#include <vector>
#include <string>
#include <algorithm>
#include <functional>
#include <iostream>
#include <sstream>
std::string cpp_headers(torch::Tensor x) {
  std::ostringstream oss;
  oss << "shape=" << x.sizes() << " dtype=" << x.dtype() << " device=" << x.device();
  std::vector<int64_t> v(x.sizes().begin(), x.sizes().end());
  std::sort(v.begin(), v.end(), std::greater<int64_t>());
  oss << " largest=" << v.front();
  return oss.str();
}
// == error_macros
#include <c10/cuda/CUDAException.h>
#include <c10/util/Exception.h>
#include <torch/extension.h>
#define CUDA_CHECK(call) do { cudaError_t err = call; TORCH_CHECK(err == cudaSuccess, "CUDA error at ", __FILE__, ":", __LINE__, ": ", cudaGetErrorString(err)); } while (0)
__global__ void too_many() {}
__global__ void noop(int) {}
int error_macros(int threads) {
  noop<<<1, threads>>>(0);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  return threads;
}
// == struct_params
#include <torch/extension.h>
struct Params { int n; float alpha; const float* in; float* out; };
__global__ void params_kernel(Params p) {
  for (int i = threadIdx.x; i < p.n; i += blockDim.x) p.out[i] = p.alpha * p.in[i];
}
torch::Tensor struct_params(torch::Tensor x, double alpha = 2.0, bool negate = false) {
  auto y = torch::empty_like(x);
  Params p{static_cast<int>(x.numel()), static_cast<float>(negate ? -alpha : alpha), x.data_ptr<float>(), y.data_ptr<float>()};
  params_kernel<<<1, 32>>>(p);
  return y;
}
// == template_dispatch
#include <torch/extension.h>
template <int BLOCK, bool SQUARE>
__global__ void t_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) y[i] = SQUARE ? x[i] * x[i] : x[i];
}
template <int BLOCK>
void launch_it(const torch::Tensor& x, torch::Tensor& y, bool square) {
  const int n = x.numel();
  if (square) t_kernel<BLOCK, true><<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  else t_kernel<BLOCK, false><<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
}
torch::Tensor template_dispatch(torch::Tensor x, int64_t block, bool square) {
  auto y = torch::empty_like(x);
  switch (block) {
    case 64: launch_it<64>(x, y, square); break;
    case 128: launch_it<128>(x, y, square); break;
    default: AT_ERROR("unsupported block size ", block);
  }
  return y;
}
// == long_long
#include <torch/extension.h>
torch::Tensor long_long(torch::Tensor idx) {
  TORCH_CHECK(idx.scalar_type() == torch::kInt64, "idx must be int64");
  auto out = torch::empty({idx.numel()}, torch::device(idx.device()).dtype(torch::kInt32));
  const int64_t* p = idx.data_ptr<int64_t>();
  const long* q = idx.data_ptr<long>();
  int* o = out.data_ptr<int>();
  int32_t* o2 = out.data_ptr<int32_t>();
  for (int64_t i = 0; i < idx.numel(); ++i) { o[i] = (int)p[i]; o2[i] += (int)q[i]; }
  return out;
}
// == bool_mask
#include <torch/extension.h>
torch::Tensor bool_mask(torch::Tensor x, float threshold) {
  auto mask = torch::empty(x.sizes(), x.options().dtype(torch::kBool));
  bool* m = mask.data_ptr<bool>();
  for (int i = 0; i < x.numel(); i++) m[i] = x.data_ptr<float>()[i] > threshold;
  return mask;
}
// == half_pointers
#include <torch/extension.h>
struct my_half { unsigned short x; };
torch::Tensor half_pointers(torch::Tensor x) {
  TORCH_CHECK(x.scalar_type() == at::kHalf || x.scalar_type() == at::kBFloat16);
  auto y = torch::empty_like(x);
  auto* in = reinterpret_cast<const my_half*>(x.data_ptr());
  auto* out = reinterpret_cast<my_half*>(y.data_ptr());
  if (x.scalar_type() == at::kHalf) TORCH_CHECK((void*)x.data_ptr<at::Half>() == (void*)in);
  else TORCH_CHECK((void*)x.data_ptr<c10::BFloat16>() == (void*)in);
  for (int i = 0; i < x.numel(); ++i) out[i] = in[x.numel() - 1 - i];
  return y;
}
// == static_state
#include <torch/extension.h>
torch::Tensor static_state(torch::Tensor x) {
  static torch::Tensor cache;
  static int calls = 0;
  if (!cache.defined() || cache.numel() != x.numel()) cache = torch::zeros({x.numel()}, x.options());
  cache.fill_(++calls);
  return cache;
}
// == scalar_result
#include <torch/extension.h>
double scalar_result(torch::Tensor x) {
  double s = 0;
  auto a = x.accessor<float, 1>();
  for (int64_t i = 0; i < a.size(0); ++i) s += a[i];
  return s;
}
// == launch_bounds_and_shared
#include <torch/extension.h>
#include <cfloat>
torch::Tensor launch_bounds_and_shared(torch::Tensor x) {
  const float lowest = -FLT_MAX;
  float best = lowest;
  for (int64_t i = 0; i < x.numel(); ++i) best = std::max(best, x.data_ptr<float>()[i]);
  return torch::full({1}, best, x.options());
}
// == atomics
#include <torch/extension.h>
__global__ void hist_kernel(const int64_t* x, int* bins, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[x[i]], 1);
}
torch::Tensor atomics(torch::Tensor x, int64_t bins) {
  auto out = torch::zeros({bins}, at::device(at::kCUDA).dtype(at::kInt));
  hist_kernel<<<(x.numel() + 31) / 32, 32>>>(x.data_ptr<int64_t>(), out.data_ptr<int>(), x.numel());
  return out;
}
// == no_grad
#include <torch/extension.h>
torch::Tensor no_grad(torch::Tensor w) {
  torch::NoGradGuard no_grad;
  at::AutoDispatchBelowADInplaceOrView guard;
  auto d = w.detach();
  TORCH_CHECK(w.requires_grad() && !d.requires_grad());
  return d.clone();
}
// == internal_asserts
#include <torch/extension.h>
int64_t internal_asserts(torch::Tensor x) {
  TORCH_INTERNAL_ASSERT(x.defined());
  TORCH_CHECK_GE(x.dim(), 1) << "need at least one dimension";
  TORCH_CHECK_VALUE(x.numel() < 100, "too large: ", x.numel());
  TORCH_CHECK_INDEX(x.size(0) > 1, "index");
  TORCH_CHECK_TYPE(x.is_floating_point(), "float wanted, got ", x.dtype());
  return x.nbytes() / x.element_size();
}
// == slices
#include <torch/extension.h>
torch::Tensor slices(torch::Tensor x) {
  auto out = torch::zeros_like(x);
  for (int64_t i = 0; i < x.size(0); ++i) {
    auto row = x[i];
    auto target = out.select(0, i).narrow(0, 0, row.size(0) / 2);
    target.copy_(row.slice(0, 0, row.size(0) / 2));
  }
  return out;
}
// == device_properties
#include <ATen/cuda/CUDAContext.h>
#include <torch/extension.h>
int device_properties(torch::Tensor) {
  const cudaDeviceProp* prop = at::cuda::getCurrentDeviceProperties();
  return at::cuda::getDeviceProperties(0)->maxThreadsPerBlock + prop->multiProcessorCount + int(at::cuda::warp_size());
}
