// == relu_plain
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void relu_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] > 0 ? x[i] : 0;
}
torch::Tensor relu_plain(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = x.numel();
  const int threads = 256;
  const int blocks = (n + threads - 1) / threads;
  relu_kernel<<<blocks, threads>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
// == add_checked
#include <torch/extension.h>
#define CHECK_CUDA(x) TORCH_CHECK(x.is_cuda(), #x " must be a CUDA tensor")
#define CHECK_CONTIGUOUS(x) TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")
#define CHECK_INPUT(x) CHECK_CUDA(x); CHECK_CONTIGUOUS(x)
__global__ void add_kernel(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int64_t n) {
  for (int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) c[i] = a[i] + b[i];
}
torch::Tensor add_checked(const torch::Tensor& a, const torch::Tensor& b) {
  CHECK_INPUT(a);
  CHECK_INPUT(b);
  TORCH_CHECK(a.sizes() == b.sizes(), "Input sizes must match, got ", a.sizes(), " and ", b.sizes());
  TORCH_CHECK(a.dtype() == torch::kFloat32, "expected float32");
  at::Tensor c = at::empty(a.sizes(), a.options());
  add_kernel<<<dim3(2), dim3(128), 0, at::cuda::getCurrentCUDAStream()>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), c.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return c;
}
// == sigmoid_dispatch
#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
template <typename scalar_t>
__global__ void sigmoid_kernel(const scalar_t* __restrict__ in, scalar_t* __restrict__ out, size_t size) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < size) out[index] = static_cast<scalar_t>(1) / (static_cast<scalar_t>(1) + static_cast<scalar_t>(std::exp(-in[index])));
}
at::Tensor sigmoid_dispatch(at::Tensor in) {
  auto out = at::empty_like(in);
  const int threads = 1024;
  AT_DISPATCH_FLOATING_TYPES(in.scalar_type(), "sigmoid_dispatch", ([&] {
    sigmoid_kernel<scalar_t><<<(in.numel() + threads - 1) / threads, threads>>>(
        in.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), in.numel());
  }));
  return out;
}
// == scale_half
#include <torch/extension.h>
template <typename scalar_t>
__global__ void scale_kernel(const scalar_t* in, scalar_t* out, float scale, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = static_cast<scalar_t>(static_cast<float>(in[i]) * scale);
}
torch::Tensor scale_half(torch::Tensor in, double scale) {
  auto out = torch::empty(in.sizes(), in.options());
  AT_DISPATCH_FLOATING_TYPES_AND2(at::ScalarType::Half, at::ScalarType::BFloat16, in.scalar_type(), "scale_half", [&] {
    scale_kernel<scalar_t><<<(in.numel() + 255) / 256, 256, 0>>>(in.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), static_cast<float>(scale), in.numel());
  });
  return out;
}
// == gelu_opmath
#include <ATen/OpMathType.h>
#include <torch/extension.h>
template <typename scalar_t>
__global__ void gelu_kernel(const scalar_t* x, scalar_t* y, int64_t n) {
  using acc_t = at::opmath_type<scalar_t>;
  const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i >= n) return;
  const acc_t v = static_cast<acc_t>(x[i]);
  y[i] = static_cast<scalar_t>(v * acc_t(0.5) * (acc_t(1) + acc_t(erff(float(v) * float(M_SQRT1_2)))));
}
torch::Tensor gelu_opmath(torch::Tensor x) {
  x = x.contiguous();
  torch::Tensor y = torch::zeros_like(x);
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "gelu", [&]() {
    gelu_kernel<scalar_t><<<(x.numel() + 511) / 512, 512>>>(x.const_data_ptr<scalar_t>(), y.mutable_data_ptr<scalar_t>(), x.numel());
  });
  return y;
}
// == inplace_void
#include <torch/extension.h>
__global__ void inplace_kernel(float* x, int n, float negative_slope) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n && x[i] < 0.f) x[i] *= negative_slope;
}
void inplace_void(torch::Tensor x, float slope) {
  inplace_kernel<<<(x.numel() + 127) / 128, 128>>>(x.data_ptr<float>(), x.numel(), slope);
  cudaError_t err = cudaGetLastError();
  if (err != cudaSuccess) throw std::runtime_error(std::string("CUDA error: ") + cudaGetErrorString(err));
}
// == out_argument
#include <torch/extension.h>
__global__ void square_kernel(const float* x, float* y, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) y[i] = x[i] * x[i];
}
void out_argument(torch::Tensor out, const torch::Tensor x) {
  AT_ASSERTM(x.is_cuda() && out.is_cuda(), "tensors must be on the GPU");
  square_kernel<<<1, 64>>>(static_cast<const float*>(x.data_ptr()), reinterpret_cast<float*>(out.data_ptr()), x.numel());
}
// == vectorised
#include <torch/types.h>
#include <c10/cuda/CUDAStream.h>
struct alignas(16) vec4 { float x, y, z, w; };
__global__ void vec_kernel(const vec4* a, vec4* b, int n4) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n4) { vec4 v = a[i]; v.x += 1; v.y += 2; v.z += 3; v.w += 4; b[i] = v; }
}
torch::Tensor vectorised(torch::Tensor a) {
  TORCH_CHECK(a.numel() % 4 == 0, "numel must be a multiple of 4, got ", a.numel());
  auto b = torch::empty(a.sizes(), torch::TensorOptions().dtype(a.dtype()).device(a.device()));
  cudaStream_t stream = c10::cuda::getCurrentCUDAStream().stream();
  vec_kernel<<<(a.numel() / 4 + 31) / 32, 32, 0, stream>>>(reinterpret_cast<const vec4*>(a.data_ptr<float>()), reinterpret_cast<vec4*>(b.data_ptr<float>()), a.numel() / 4);
  return b;
}
// == optional_bias
#include <torch/extension.h>
__global__ void bias_kernel(const float* x, const float* bias, float* y, int rows, int cols) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows * cols) y[i] = x[i] + (bias != nullptr ? bias[i % cols] : 0.0f);
}
torch::Tensor optional_bias(torch::Tensor x, c10::optional<torch::Tensor> bias) {
  auto y = torch::empty({x.size(0), x.size(1)}, x.options());
  const float* bias_ptr = bias.has_value() && bias.value().defined() ? bias.value().data_ptr<float>() : nullptr;
  bias_kernel<<<(y.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), bias_ptr, y.data_ptr<float>(), x.size(0), x.size(1));
  return y;
}
// == integers
#include <torch/extension.h>
template <typename T>
__global__ void twice_kernel(const T* x, T* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + x[i];
}
torch::Tensor integers(torch::Tensor x) {
  auto y = torch::empty_like(x);
  AT_DISPATCH_INTEGRAL_TYPES(x.scalar_type(), "integers", [&] {
    twice_kernel<<<1, 256>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), (int)x.numel());
  });
  return y;
}
// == type_switch
#include <torch/extension.h>
torch::Tensor type_switch(torch::Tensor x) {
  auto y = torch::empty_like(x);
  switch (x.scalar_type()) {
    case torch::kFloat: y.fill_(1); break;
    case at::ScalarType::Double: y.fill_(2); break;
    case c10::ScalarType::Half: y.fill_(3); break;
    default: TORCH_CHECK(false, "Unsupported dtype: ", x.scalar_type());
  }
  if (x.dtype() == torch::kFloat64 || x.dtype() == at::kDouble) y.fill_(y.item<double>() + 0.5);
  return y;
}
// == guard_and_stream
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/extension.h>
__global__ void one_kernel(float* y, int n) { int i = threadIdx.x; if (i < n) y[i] = 1; }
torch::Tensor guard_and_stream(torch::Tensor x) {
  const at::cuda::OptionalCUDAGuard device_guard(device_of(x));
  c10::cuda::CUDAGuard guard(x.device().index());
  auto stream = at::cuda::getCurrentCUDAStream(x.get_device());
  auto y = torch::empty({x.numel()}, torch::dtype(torch::kFloat32).device(torch::kCUDA, x.device().index()));
  one_kernel<<<1, 64, 0, stream>>>(y.data_ptr<float>(), y.numel());
  AT_CUDA_CHECK(cudaGetLastError());
  C10_CUDA_CHECK(cudaStreamSynchronize(stream));
  return y;
}
