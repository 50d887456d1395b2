// Compute operators as functions (torch::matmul(a, b), a + b): each calls the Python operator
// torch.ops.aten.<name>. Included last, and only sugar: nothing else depends on it.
#pragma once
#ifdef KGTORCH_KIT  // inline functions are compiled once, in an object of their own
#pragma interface
#endif
#include "factories.h"

namespace at {

// One tensor first, one tensor as result.
#define KGTORCH_FUNCTIONS(X)                                                                      \
  KGTORCH_METHODS(X)                                                                              \
  X(avg_pool1d) X(celu) X(clone) X(constant_pad_nd) X(cross_entropy_loss) X(cumsum_) X(dropout)   \
  X(elu) X(embedding) X(expand_copy) X(frobenius_norm) X(gelu) X(glu) X(hardshrink)               \
  X(hardsigmoid) X(hardswish) X(hardtanh) X(huber_loss) X(index) X(instance_norm) X(kl_div)       \
  X(l1_loss) X(leaky_relu) X(log_sigmoid) X(mish) X(mse_loss) X(nll_loss) X(pairwise_distance) \
  X(cosine_similarity) X(pixel_shuffle) X(prelu) X(relu6) X(rms_norm) X(selu) X(silu)             \
  X(smooth_l1_loss) X(softmin) X(softplus) X(softsign) X(tanhshrink) X(threshold) X(vector_norm)  \
  X(gelu_) X(silu_) X(leaky_relu_) X(elu_) X(hardtanh_) X(hardswish_)                             \
  X(avg_pool2d) X(avg_pool3d) X(max_pool1d) X(max_pool2d) X(max_pool3d)                           \
  X(adaptive_avg_pool1d) X(adaptive_avg_pool2d) X(adaptive_avg_pool3d) X(upsample_nearest2d)      \
  X(scaled_dot_product_attention) X(batch_norm) X(triplet_margin_loss) X(binary_cross_entropy)

#define KGTORCH_FUNCTION(NAME)                                                                    \
  template <class... Args>                                                                        \
  Tensor NAME(const Tensor& first, const Args&... rest) {                                         \
    return Tensor::computed(kgtorch::aten(#NAME, first, rest...));                                \
  }                                                                                               \
  template <class... Args>                                                                        \
  Tensor NAME(const Tensor& first, std::initializer_list<int64_t> list, const Args&... rest) {    \
    return Tensor::computed(kgtorch::aten(#NAME, first, list, rest...));                          \
  }                                                                                               \
  template <class... Args>                                                                        \
  Tensor NAME(const Tensor& first, std::initializer_list<int64_t> a,                              \
              std::initializer_list<int64_t> b, const Args&... rest) {                            \
    return Tensor::computed(kgtorch::aten(#NAME, first, a, b, rest...));                          \
  }                                                                                               \
  template <class... Args>                                                                        \
  Tensor NAME(const Tensor& first, std::initializer_list<int64_t> a,                              \
              std::initializer_list<int64_t> b, std::initializer_list<int64_t> c,                 \
              const Args&... rest) {                                                              \
    return Tensor::computed(kgtorch::aten(#NAME, first, a, b, c, rest...));                       \
  }
KGTORCH_FUNCTIONS(KGTORCH_FUNCTION)
#undef KGTORCH_FUNCTION

#define KGTORCH_FUNCTION(NAME)                                  \
  template <class... Args>                                      \
  auto NAME(const Tensor& first, const Args&... rest) {         \
    return first.NAME(rest...);                                 \
  }
KGTORCH_PAIR_METHODS(KGTORCH_FUNCTION)
#undef KGTORCH_FUNCTION

// Views and copies as functions.
#define KGTORCH_FUNCTION(NAME)                                            \
  template <class... Args>                                                \
  auto NAME(const Tensor& self, const Args&... args) {                    \
    return self.NAME(args...);                                            \
  }
KGTORCH_FUNCTION(transpose)
KGTORCH_FUNCTION(flatten)
KGTORCH_FUNCTION(squeeze)
KGTORCH_FUNCTION(unsqueeze)
KGTORCH_FUNCTION(narrow)
KGTORCH_FUNCTION(select)
KGTORCH_FUNCTION(chunk)
KGTORCH_FUNCTION(split)
KGTORCH_FUNCTION(unbind)
KGTORCH_FUNCTION(t)
#undef KGTORCH_FUNCTION
inline Tensor reshape(const Tensor& self, IntArrayRef sizes) { return self.reshape(sizes); }
inline Tensor permute(const Tensor& self, IntArrayRef dims) { return self.permute(dims); }

inline Tensor cat(TensorList tensors, int64_t dim = 0) {
  return Tensor::computed(kgtorch::aten("cat", tensors, dim));
}
inline Tensor concat(TensorList tensors, int64_t dim = 0) { return cat(tensors, dim); }
inline Tensor stack(TensorList tensors, int64_t dim = 0) {
  return Tensor::computed(kgtorch::aten("stack", tensors, dim));
}
inline Tensor einsum(const std::string& equation, TensorList tensors) {
  return Tensor::computed(kgtorch::aten("einsum", equation, tensors));
}
template <class A, class B>
Tensor where(const Tensor& condition, const A& a, const B& b) {
  return Tensor::computed(kgtorch::aten("where", condition, a, b));
}

using OptionalTensor = std::optional<Tensor>;
#define KGTORCH_CONVOLUTION(NAME)                                                                 \
  inline Tensor NAME(const Tensor& input, const Tensor& weight, const OptionalTensor& bias = {},  \
                     IntArrayRef stride = 1, IntArrayRef padding = 0, IntArrayRef dilation = 1,   \
                     int64_t groups = 1) {                                                        \
    return Tensor::computed(                                                                      \
        kgtorch::aten(#NAME, input, weight, bias, stride, padding, dilation, groups));            \
  }
KGTORCH_CONVOLUTION(conv1d)
KGTORCH_CONVOLUTION(conv2d)
KGTORCH_CONVOLUTION(conv3d)
#undef KGTORCH_CONVOLUTION
#define KGTORCH_CONVOLUTION(NAME)                                                                 \
  inline Tensor NAME(const Tensor& input, const Tensor& weight, const OptionalTensor& bias = {},  \
                     IntArrayRef stride = 1, IntArrayRef padding = 0,                             \
                     IntArrayRef output_padding = 0, int64_t groups = 1,                          \
                     IntArrayRef dilation = 1) {                                                  \
    return Tensor::computed(kgtorch::aten(#NAME, input, weight, bias, stride, padding,            \
                                          output_padding, groups, dilation));                     \
  }
KGTORCH_CONVOLUTION(conv_transpose1d)
KGTORCH_CONVOLUTION(conv_transpose2d)
KGTORCH_CONVOLUTION(conv_transpose3d)
#undef KGTORCH_CONVOLUTION
inline Tensor linear(const Tensor& input, const Tensor& weight, const OptionalTensor& bias = {}) {
  return Tensor::computed(kgtorch::aten("linear", input, weight, bias));
}
inline Tensor layer_norm(const Tensor& input, IntArrayRef shape, const OptionalTensor& weight = {},
                         const OptionalTensor& bias = {}, double eps = 1e-5) {
  return Tensor::computed(kgtorch::aten("layer_norm", input, shape, weight, bias, eps));
}
inline Tensor group_norm(const Tensor& input, int64_t groups, const OptionalTensor& weight = {},
                         const OptionalTensor& bias = {}, double eps = 1e-5) {
  return Tensor::computed(kgtorch::aten("group_norm", input, groups, weight, bias, eps));
}
inline Tensor linspace(const Scalar& first, const Scalar& last, int64_t steps) {
  return Tensor::computed(kgtorch::aten("linspace", first, last, steps));
}

#define KGTORCH_BINARY(OP, NAME)                                                            \
  inline Tensor operator OP(const Tensor& a, const Tensor& b) { return NAME(a, b); }        \
  inline Tensor operator OP(const Tensor& a, const Scalar& b) { return NAME(a, b); }
KGTORCH_BINARY(+, add)
KGTORCH_BINARY(-, sub)
KGTORCH_BINARY(*, mul)
KGTORCH_BINARY(/, div)
KGTORCH_BINARY(<, lt)
KGTORCH_BINARY(<=, le)
KGTORCH_BINARY(>, gt)
KGTORCH_BINARY(>=, ge)
KGTORCH_BINARY(==, eq)
KGTORCH_BINARY(!=, ne)
#undef KGTORCH_BINARY
inline Tensor operator+(const Scalar& a, const Tensor& b) { return add(b, a); }
inline Tensor operator*(const Scalar& a, const Tensor& b) { return mul(b, a); }
inline Tensor operator-(const Scalar& a, const Tensor& b) { return rsub(b, a); }
inline Tensor operator/(const Scalar& a, const Tensor& b) { return mul(reciprocal(b), a); }

#define KGTORCH_RANDOM(NAME)                                                               \
  inline Tensor NAME(IntArrayRef sizes, const TensorOptions& options = {}) {               \
    const Tensor drawn = Tensor::computed(kgtorch::aten(#NAME, sizes));                    \
    return kgtorch::copied(drawn, options, "torch::" #NAME);                               \
  }                                                                                        \
  inline Tensor NAME##_like(const Tensor& self, const TensorOptions& options = {}) {       \
    return NAME(self.sizes(), self.options().merge_in(options));                           \
  }
KGTORCH_RANDOM(rand)
KGTORCH_RANDOM(randn)
#undef KGTORCH_RANDOM

}  // namespace at
