// Compute operators as members of a tensor (x.sum(1), x.add_(y)): each calls the Python operator
// torch.ops.aten.<name>, whose positional arguments are those of the C++ interface.
#pragma once
#ifdef KGTORCH_KIT  // inline functions are compiled once, in an object of their own
#pragma interface
#endif
#include "python.h"

namespace kgtorch {

template <class... Args>
inline constexpr bool ends_with_dtype = false;
template <class T>
inline constexpr bool ends_with_dtype<T> =
    std::is_same_v<T, c10::ScalarType> || std::is_same_v<T, std::optional<c10::ScalarType>>;
template <class T, class... Rest>
inline constexpr bool ends_with_dtype<T, Rest...> = ends_with_dtype<Rest...>;

// torch.ops.aten.<name>(*args); a dtype in last place is passed by name, as some schemas demand.
template <class... Args>
Ref aten(const char* name, const Args&... args) {
  const Ref packet = Torch::get().aten.attr(name);
  constexpr size_t count = sizeof...(Args);
  const Ref owned[] = {to_python(args)...};
  if constexpr (ends_with_dtype<Args...>) {
    const Ref named(Py_BuildValue("{sO}", "dtype", owned[count - 1].get()));
    return call_with(packet.get(), owned, count - 1, named.get());
  } else {
    return call_with(packet.get(), owned, count, nullptr);
  }
}

// Operators with one tensor as result.
#define KGTORCH_METHODS(X)                                                                        \
  X(abs) X(acos) X(add) X(addcdiv) X(addcmul) X(addmm) X(addmv) X(all) X(amax) X(amin) X(any)     \
  X(argmax) X(argmin) X(argsort) X(asin) X(atan) X(baddbmm) X(bmm) X(ceil) X(clamp) X(clamp_max)  \
  X(clamp_min) X(cos) X(cosh) X(cumprod) X(cumsum) X(diag) X(diagonal) X(div) X(dot) X(eq) X(erf) \
  X(erfc) X(exp) X(exp2) X(expm1) X(flip) X(floor) X(floor_divide) X(fmod) X(gather) X(ge)        \
  X(gt) X(index_add) X(index_select) X(isinf) X(isnan) X(le) X(lerp) X(log) X(log10) X(log1p)     \
  X(log2) X(log_softmax) X(logical_and) X(logical_not) X(logical_or) X(logsumexp) X(lt)           \
  X(masked_fill) X(masked_select) X(matmul) X(maximum) X(mean) X(minimum) X(mm) X(mul) X(mv)      \
  X(ne) X(neg) X(norm) X(outer) X(pow) X(prod) X(reciprocal) X(relu) X(remainder) X(repeat)       \
  X(roll) X(round) X(rsqrt) X(rsub) X(scatter) X(scatter_add) X(sigmoid) X(sign) X(sin) X(sinh)   \
  X(softmax) X(sqrt) X(square) X(std) X(sub) X(sum) X(tan) X(tanh) X(tril) X(triu) X(trunc)       \
  X(unfold) X(var)                                                                                \
  X(abs_) X(add_) X(addcdiv_) X(addcmul_) X(addmm_) X(ceil_) X(clamp_) X(clamp_max_)              \
  X(clamp_min_) X(cos_) X(div_) X(exp_) X(floor_) X(lerp_) X(log_) X(masked_fill_) X(mul_)        \
  X(neg_) X(pow_) X(reciprocal_) X(relu_) X(round_) X(rsqrt_) X(scatter_) X(scatter_add_)         \
  X(sigmoid_) X(sin_) X(sqrt_) X(sub_) X(tanh_) X(tril_) X(triu_)

// Operators with a pair of tensors as result when they are given a dimension.
#define KGTORCH_PAIR_METHODS(X) X(max) X(min) X(sort) X(topk) X(median) X(mode) X(kthvalue)

template <class Self>
class ComputeMethods {
 public:
#define KGTORCH_METHOD(NAME)                                                       \
  template <class... Args>                                                         \
  Self NAME(const Args&... args) const {                                           \
    return result(aten(#NAME, self(), args...));                                   \
  }                                                                                \
  template <class... Args>                                                         \
  Self NAME(std::initializer_list<int64_t> list, const Args&... args) const {      \
    return result(aten(#NAME, self(), list, args...));                             \
  }
  KGTORCH_METHODS(KGTORCH_METHOD)
#undef KGTORCH_METHOD
#define KGTORCH_METHOD(NAME)                                                       \
  template <class... Args>                                                         \
  auto NAME(int64_t first, const Args&... args) const {                            \
    const Ref pair = aten(#NAME, self(), first, args...);                          \
    return std::make_tuple(Self::from_python(PyTuple_GetItem(pair.get(), 0)),      \
                           Self::from_python(PyTuple_GetItem(pair.get(), 1)));     \
  }                                                                                \
  Self NAME() const { return result(aten(#NAME, self())); }                        \
  template <class Other, std::enable_if_t<std::is_same_v<Other, Self>, int> = 0>   \
  Self NAME(const Other& other) const {                                            \
    return result(aten(#NAME, self(), other));                                     \
  }
  KGTORCH_PAIR_METHODS(KGTORCH_METHOD)
#undef KGTORCH_METHOD

  template <class T>
  const Self& operator+=(const T& other) const {
    aten("add_", self(), other);
    return written();
  }
  template <class T>
  const Self& operator-=(const T& other) const {
    aten("sub_", self(), other);
    return written();
  }
  template <class T>
  const Self& operator*=(const T& other) const {
    aten("mul_", self(), other);
    return written();
  }
  template <class T>
  const Self& operator/=(const T& other) const {
    aten("div_", self(), other);
    return written();
  }
  Self operator-() const { return result(aten("neg", self())); }

 private:
  const Self& self() const { return static_cast<const Self&>(*this); }
  const Self& written() const {
    self().mark_written();
    return self();
  }
  static Self result(Ref object) { return Self::computed(static_cast<Ref&&>(object)); }
};

}  // namespace kgtorch
