// Compute operators called from C++, which the ruleset `kernelbench` allows.
#include <torch/extension.h>

using torch::Tensor;

static std::vector<Tensor> all(Tensor x, Tensor y, Tensor image, Tensor weight, Tensor bias) {
  std::vector<Tensor> out = {
      x + y,
      x - y * 2.0,
      1.0 - x,
      2 / y,
      -x,
      torch::matmul(x, y.t()),
      at::relu(x),
      x.sum(),
      x.sum(1),
      x.sum({0, 1}, true),
      x.mean(-1, true),
      torch::softmax(x, 1),
      x.softmax(-1),
      torch::sum(x, {1}, false),
      at::conv2d(image, weight, bias, {2, 2}, {1, 1}),
      torch::conv2d(image, weight),
      torch::max_pool2d(image, {2, 2}, {2, 2}),
      at::linear(x, y, {}),
      torch::layer_norm(x, {x.size(1)}),
      std::get<0>(x.max(1)),
      std::get<1>(torch::topk(x, 2)),
      x.max(),
      torch::max(x, y),
      torch::cat({x, y}, 0),
      torch::stack({x, y}),
      torch::where(x > 0, x, y),
      torch::clamp(x, -0.5, 0.5),
      x.pow(2).sqrt().add_(1),
      torch::einsum("ij,kj->ik", {x, y}),
      torch::gelu(x),
      torch::addmm(x.sum(0), x, y.t().matmul(y)),
      torch::mm(x, y.transpose(0, 1)),
      x.sum(1, false, torch::kDouble),
      x.eq(y),
      (x >= y),
      torch::norm(x),
      torch::transpose(x, 0, 1),
  };
  Tensor z = x.clone();
  z += y;
  z *= 2;
  z -= 1;
  out.push_back(z);
  return out;
}
static Tensor draw(Tensor x) { return torch::rand({3, 4}, x.options()); }
static Tensor fails(Tensor x) { return torch::matmul(x, x); }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("all", &all);
  m.def("random", &draw);
  m.def("fails", &fails);
}
