// What a tensor answers and makes, one function a question.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/extension.h>

#include <sstream>

using torch::Tensor;

static std::string metadata(Tensor x) {
  std::ostringstream out;
  out << x.sizes() << " " << x.strides() << " " << x.dim() << " " << x.numel() << " " << x.nbytes()
      << " " << x.dtype() << " " << x.scalar_type() << " " << x.device() << " "
      << x.is_contiguous() << " " << x.element_size() << " " << x.options().dtype();
  return out.str();
}

static std::vector<int64_t> indexing(Tensor x) { return {x.size(0), x.size(-1), x.stride(-1)}; }

// Gives the address, so that the test can compare it with Python's.
static int64_t address(Tensor x) { return reinterpret_cast<int64_t>(x.data_ptr()); }
static int64_t typed_address(const Tensor& x) {
  int64_t result = 0;
  AT_DISPATCH_ALL_TYPES_AND3(at::kHalf, at::kBFloat16, at::kBool, x.scalar_type(), "typed", [&] {
    const scalar_t* p = x.const_data_ptr<scalar_t>();
    TORCH_INTERNAL_ASSERT(p == x.mutable_data_ptr<scalar_t>());
    result = reinterpret_cast<int64_t>(p);
  });
  return result;
}

static std::vector<Tensor> views(Tensor x) {  // x is 2 x 3 x 4
  return {x.view({6, 4}),     x.view({-1}),      x.reshape({4, 6}),      x.flatten(),
          x.flatten(1),       x.transpose(0, 2), x.permute({2, 0, 1}),   x.select(1, 0).t(),
          x[1],               x.unsqueeze(0),    x.unsqueeze(0).squeeze(), x.narrow(2, 1, 2),
          x.slice(2, 0, 4, 2), x.slice(1, 1),    x.expand({5, 2, 3, 4}), x.view({2, 1, 12}).squeeze(1)};
}

static std::vector<Tensor> made(Tensor like) {
  auto options = torch::TensorOptions().dtype(torch::kFloat32).device(like.device());
  return {torch::zeros({2, 3}, options),
          torch::ones({2}, like.options().dtype(torch::kInt32)),
          torch::full({2, 2}, 7.5, options),
          torch::full_like(like, 3),
          torch::zeros_like(like),
          torch::ones_like(like, like.options().dtype(at::kHalf)),
          torch::arange(5, torch::dtype(torch::kFloat).device(torch::kCUDA)),
          torch::tensor({1.5, 2.5}, options),
          torch::tensor(4),
          like.new_full({2}, 9),
          like.new_zeros({1, 2})};
}

static Tensor make_empty(Tensor like, bool strided) {
  if (strided) return torch::empty_strided({2, 3}, {1, 2}, like.options());
  return torch::empty({like.size(0), 5}, like.options());
}
static Tensor empty_like(Tensor x) { return torch::empty_like(x); }
static Tensor channels_last(Tensor x) {
  return at::empty(x.sizes(), x.options(), at::MemoryFormat::ChannelsLast);
}
static Tensor huge() { return torch::empty({1LL << 45}, torch::kFloat); }
static Tensor negative() { return torch::empty({-1}, torch::kFloat); }

static Tensor contiguous(Tensor x) { return x.contiguous(); }
static std::vector<Tensor> copies(Tensor x) {
  return {x.clone(), x.to(torch::kFloat64), x.to(at::kHalf), x.to(torch::kCUDA),
          x.to(x.options().dtype(torch::kInt)), x.toType(at::kLong)};
}
static void change(Tensor x, Tensor y, Tensor z) {
  x.zero_();
  y.fill_(2.5);
  z.copy_(y);
}
static void zero_column(Tensor x) { x.select(1, 0).zero_(); }

template <typename scalar_t>
static void add_one(torch::PackedTensorAccessor32<scalar_t, 2, torch::RestrictPtrTraits> a) {
  for (int i = 0; i < a.size(0); ++i)
    for (int j = 0; j < a.size(1); ++j) a[i][j] += scalar_t(1);
}
static Tensor accessors(Tensor x) {
  add_one<float>(x.packed_accessor32<float, 2, torch::RestrictPtrTraits>());
  auto wide = x.packed_accessor64<float, 2>();
  wide[0][0] = 100;
  auto plain = x.accessor<float, 2>();
  plain[1][1] = plain[0][0] + 1;
  return x;
}

static std::vector<double> items(Tensor f, Tensor i, Tensor b) {
  return {f.item<float>(), double(i.item<int64_t>()), double(b.item().toBool()),
          f.item().to<double>()};
}

static std::string types(Tensor x) {
  TORCH_CHECK(x.dtype() == torch::kFloat32 && x.scalar_type() == at::ScalarType::Float);
  TORCH_CHECK(x.is_cuda() && x.device().is_cuda() && x.device().type() == torch::kCUDA);
  TORCH_CHECK(x.type().is_cuda() && x.is_floating_point() && x.get_device() == 0);
  TORCH_CHECK(x.defined() && !Tensor().defined());
  at::cuda::CUDAGuard guard(x.device());
  const at::cuda::OptionalCUDAGuard optional_guard(device_of(x));
  c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream();
  cudaStream_t raw = at::cuda::getCurrentCUDAStream();
  TORCH_CHECK(raw == stream.stream());
  TORCH_CHECK(at::cuda::getCurrentCUDABlasHandle() != nullptr);
  TORCH_CHECK(at::cuda::getCurrentDeviceProperties()->multiProcessorCount == 132);
  return c10::str(x.dtype().name(), " ", x.dtype().itemsize(), " ", torch::kBFloat16);
}

static std::vector<double> halves(std::vector<double> values) {
  std::vector<double> result;
  for (double value : values) {
    const at::Half half = static_cast<float>(value);
    const at::BFloat16 brain = static_cast<float>(value);
    result.push_back(float(half));
    result.push_back(float(brain));
  }
  return result;
}
static double half_arithmetic() {
  at::Half a = 1.5f, b(2);
  a += b;
  a = a * b - at::Half(1) / b;
  TORCH_CHECK(a > 0 && a > 0.5f && 0.5 < b && b != a && a == at::Half(6.5f) && !(a <= b));
  at::acc_type<at::Half, true> sum = a;
  return sum + 2.0f * a + (a > b ? 1 : 0) + double(std::numeric_limits<at::Half>::max());
}

static void fail(int kind) {
  Tensor undefined;
  switch (kind) {
    case 0: TORCH_CHECK(kind == 1, "kind is ", kind, ", wanted ", 1.5, " and ", std::string("x"));
    case 1: TORCH_CHECK(kind != 1); break;
    case 2: TORCH_CHECK_EQ(kind, 3) << "more";
    case 3: AT_ASSERTM(false, "asserted"); break;
    case 4: TORCH_INTERNAL_ASSERT(kind < 0, "inside"); break;
    case 5: undefined.sizes(); break;
    case 6: torch::zeros({2}).size(2); break;
    case 7: throw std::runtime_error("plain");
    case 8: torch::zeros({2}, torch::kFloat).data_ptr<int>(); break;
    case 9: torch::zeros({6}).view({4}); break;
    case 10: AT_ERROR("at error ", 10);
    case 11: throw py::value_error("value");
    case 12: throw 12;
    case 13: cuda_last_error = cudaErrorInvalidValue; C10_CUDA_KERNEL_LAUNCH_CHECK(); break;
    case 14: TORCH_CHECK_NOT_IMPLEMENTED(false, "not yet"); break;
    case 15: torch::zeros({2, 2}).accessor<float, 3>(); break;
    case 16:
      AT_DISPATCH_FLOATING_TYPES(at::kInt, "my_kernel", [&] { (void)sizeof(scalar_t); });
      break;
    default: TORCH_WARN("careful with ", kind);
  }
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("metadata", &metadata);
  m.def("indexing", &indexing);
  m.def("address", &address);
  m.def("typed_address", &typed_address);
  m.def("views", &views);
  m.def("made", &made);
  m.def("make_empty", &make_empty);
  m.def("empty_like", &empty_like);
  m.def("channels_last", &channels_last);
  m.def("huge", &huge);
  m.def("negative", &negative);
  m.def("contiguous", &contiguous);
  m.def("copies", &copies);
  m.def("change", &change);
  m.def("zero_column", &zero_column);
  m.def("accessors", &accessors);
  m.def("items", &items);
  m.def("types", &types);
  m.def("halves", &halves);
  m.def("half_arithmetic", &half_arithmetic);
  m.def("fail", &fail);
}
