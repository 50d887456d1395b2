// c10::ArrayRef and c10::optional.
#pragma once
#ifdef KGTORCH_KIT  // inline functions are compiled once, in an object of their own
#pragma interface
#endif
#include <initializer_list>
#include <optional>
#include <tuple>
#include <vector>

#include "macros.h"

namespace c10 {

template <class T>
using optional = std::optional<T>;
using nullopt_t = std::nullopt_t;
using std::make_optional;
using std::nullopt;

// A view of `size()` values that somebody else owns.
template <class T>
class ArrayRef {
 public:
  using value_type = T;
  using iterator = const T*;
  constexpr ArrayRef() = default;
  constexpr ArrayRef(const T& one) : data_(&one), size_(1) {}
  constexpr ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  constexpr ArrayRef(const T* first, const T* last)
      : data_(first), size_(static_cast<size_t>(last - first)) {}
  ArrayRef(const std::vector<T>& values) : data_(values.data()), size_(values.size()) {}
  // As in torch, a braced list lives as long as the full expression it is written in.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
#endif
  constexpr ArrayRef(const std::initializer_list<T>& values)
      : data_(values.size() ? values.begin() : nullptr), size_(values.size()) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
  template <size_t N>
  constexpr ArrayRef(const T (&values)[N]) : data_(values), size_(N) {}
  // std::array, without its header.
  template <class A, size_t N = std::tuple_size<A>::value,
            class = decltype(std::declval<const A&>().fill)>
  constexpr ArrayRef(const A& values) : data_(values.data()), size_(N) {}

  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T& operator[](size_t i) const { return data_[i]; }
  const T& at(size_t i) const { return data_[i]; }
  constexpr const T& front() const { return data_[0]; }
  constexpr const T& back() const { return data_[size_ - 1]; }
  ArrayRef slice(size_t first, size_t count) const { return {data_ + first, count}; }
  ArrayRef slice(size_t first) const { return {data_ + first, size_ - first}; }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
  bool equals(ArrayRef other) const {
    if (size_ != other.size_) return false;
    for (size_t i = 0; i < size_; ++i)
      if (!(data_[i] == other.data_[i])) return false;
    return true;
  }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};

template <class T>
bool operator==(ArrayRef<T> a, ArrayRef<T> b) {
  return a.equals(b);
}
template <class T>
bool operator!=(ArrayRef<T> a, ArrayRef<T> b) {
  return !a.equals(b);
}
template <class T>
bool operator==(const std::vector<T>& a, ArrayRef<T> b) {
  return ArrayRef<T>(a).equals(b);
}
template <class T>
bool operator==(ArrayRef<T> a, const std::vector<T>& b) {
  return a.equals(ArrayRef<T>(b));
}
template <class T>
bool operator!=(ArrayRef<T> a, const std::vector<T>& b) {
  return !(a == b);
}

using IntArrayRef = ArrayRef<int64_t>;
using IntList = ArrayRef<int64_t>;

// Optional dimensions: nothing, one, or several; owns what it holds.
class OptionalIntArrayRef {
 public:
  OptionalIntArrayRef() = default;
  OptionalIntArrayRef(nullopt_t) {}
  OptionalIntArrayRef(IntArrayRef values) : values_(values.vec()) {}
  OptionalIntArrayRef(const std::vector<int64_t>& values) : values_(values) {}
  OptionalIntArrayRef(std::initializer_list<int64_t> values) : values_(values) {}
  OptionalIntArrayRef(int64_t one) : values_(std::vector<int64_t>{one}) {}
  bool has_value() const { return values_.has_value(); }
  explicit operator bool() const { return has_value(); }
  IntArrayRef value() const { return IntArrayRef(*values_); }
  IntArrayRef operator*() const { return value(); }

 private:
  std::optional<std::vector<int64_t>> values_;
};

}  // namespace c10
