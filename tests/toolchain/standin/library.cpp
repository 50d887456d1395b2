// Operators registered with TORCH_LIBRARY.
#include <torch/extension.h>

static torch::Tensor twice(const torch::Tensor& x) {
  auto y = torch::empty_like(x);
  for (int64_t i = 0; i < x.numel(); ++i) y.data_ptr<float>()[i] = 2 * x.data_ptr<float>()[i];
  return y;
}
static torch::Tensor scale(torch::Tensor x, double factor, c10::optional<torch::Tensor> bias) {
  auto y = twice(x);
  for (int64_t i = 0; i < x.numel(); ++i)
    y.data_ptr<float>()[i] *= float(factor);
  if (bias) y.copy_(*bias);
  return y;
}
static std::tuple<torch::Tensor, torch::Tensor> both(torch::Tensor x, int64_t) {
  return {x.clone(), twice(x)};
}

TORCH_LIBRARY(kgtest_ops, m) {
  m.def("twice(Tensor x) -> Tensor");
  m.def("scale", &scale);
  m.def("both(Tensor x, int n) -> (Tensor, Tensor)", &both);
}
TORCH_LIBRARY_IMPL(kgtest_ops, CUDA, m) { m.impl("twice", &twice); }
TORCH_LIBRARY_FRAGMENT(kgtest_ops, m) {
  m.def("more(Tensor x) -> Tensor");
  m.impl("more", torch::kCUDA, TORCH_FN(twice));
}
