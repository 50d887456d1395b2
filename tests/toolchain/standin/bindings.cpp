// Every kind of parameter and result that a binding converts.
#include <torch/extension.h>

#include <map>
#include <sstream>

static std::string kinds(int64_t i, double d, bool b, const std::string& s, float f, int n,
                         unsigned char c) {
  return c10::str(i, " ", d, " ", b, " ", s, " ", f, " ", n, " ", int(c));
}
static torch::Tensor reference(const torch::Tensor& a, torch::Tensor& b, const at::Tensor c) {
  return a.numel() > 5 ? a : b.numel() > 5 ? b : c;
}
static std::string optional(c10::optional<torch::Tensor> t, std::optional<int64_t> i,
                            const c10::optional<at::Tensor>& u) {
  return c10::str(t.has_value() ? t->numel() : -1, " ", i.value_or(-1), " ", u.has_value());
}
static int64_t lists(const std::vector<torch::Tensor>& ts, std::vector<int64_t> dims,
                     at::IntArrayRef ref, std::vector<double> fs, at::TensorList tensors) {
  int64_t total = int64_t(fs.size()) * 1000 + int64_t(tensors.size()) * 10000;
  for (auto& t : ts) total += t.numel();
  for (auto d : dims) total += d;
  for (auto d : ref) total += 100 * d;
  return total;
}
static std::tuple<torch::Tensor, torch::Tensor, int64_t> triple(torch::Tensor x) {
  return std::make_tuple(x, torch::Tensor(), x.numel());
}
static std::pair<double, std::string> pair(std::pair<int, double> p, std::tuple<bool, int> t) {
  return {p.first + p.second, std::get<0>(t) ? "yes" : std::to_string(std::get<1>(t))};
}
static std::vector<torch::Tensor> two(torch::Tensor x) { return {x, x.view({-1})}; }
static std::optional<double> maybe(bool yes) {
  if (yes) return 2.5;
  return std::nullopt;
}
static double scaled(double x, double scale) { return x * scale; }
static std::string which(int64_t) { return "int"; }
static std::string which(double) { return "float"; }
static std::string which(torch::Tensor) { return "tensor"; }
static void nothing(torch::Tensor x) { x.zero_(); }
static py::object objects(py::dict d, py::list l, py::object f) {
  py::list out;
  out.append(d["key"]);
  out.append(l[0]);
  out.append(f(2, 3));
  return out;
}
static py::dict dictionary(torch::Tensor x) {
  py::dict d;
  d["x"] = x;
  d["n"] = x.numel();
  return d;
}
static at::ScalarType type(at::ScalarType t, torch::Device d) {
  TORCH_CHECK(d.is_cuda());
  return t;
}
static double scalar(const at::Scalar& s) { return s.toDouble() + (s.isIntegral() ? 0.25 : 0); }

struct Affine {
  double slope;
  double operator()(double x) const { return slope * x; }
};

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.doc() = "module text";
  m.attr("answer") = 42;
  m.def("kinds", &kinds, "all kinds", py::arg("i"), py::arg("d") = 1.5, py::arg("b") = true,
        py::arg("s") = "text", py::arg("f") = 2, py::arg("n") = -1, py::arg("c") = 7);
  m.def("reference", &reference);
  m.def("optional", &optional, py::arg("t") = py::none(), py::arg("i") = c10::nullopt,
        py::arg("u") = std::nullopt);
  m.def("lists", &lists);
  m.def("triple", &triple);
  m.def("pair", &pair);
  m.def("two", &two);
  m.def("maybe", &maybe);
  m.def("scaled", &scaled, py::arg("x"), pybind11::arg("scale"));
  m.def("which", static_cast<std::string (*)(torch::Tensor)>(&which));
  m.def("which", static_cast<std::string (*)(double)>(&which));
  m.def("which", static_cast<std::string (*)(int64_t)>(&which));
  m.def("nothing", nothing, py::call_guard<py::gil_scoped_release>());
  m.def("objects", &objects);
  m.def("dictionary", &dictionary);
  m.def("type", &type);
  m.def("scalar", &scalar);
  m.def("affine", Affine{3});
  int calls = 0;
  m.def("count", [calls]() mutable { return ++calls; });
  m.def("lambda", [](torch::Tensor x, float alpha) {
    auto y = torch::empty_like(x);
    for (int64_t i = 0; i < x.numel(); ++i) y.data_ptr<float>()[i] = alpha * x.data_ptr<float>()[i];
    return y;
  }, "scales", py::arg("x"), py::arg("alpha") = 0.5f);
}
