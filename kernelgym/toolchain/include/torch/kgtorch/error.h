// c10::Error, and the TORCH_CHECK family.
#pragma once
#ifdef KGTORCH_KIT  // inline functions are compiled once, in an object of their own
#pragma interface
#endif
#include <stdexcept>
#include <string>

#include "array_ref.h"

namespace c10 {
namespace detail {

inline void append(std::string& out, const char* text) { out += text ? text : "(null)"; }
inline void append(std::string& out, const std::string& text) { out += text; }
inline void append(std::string& out, char c) { out += c; }
inline void append(std::string& out, bool value) { out += value ? '1' : '0'; }
inline void append_number(std::string& out, double value) {
  char text[32];
  __builtin_snprintf(text, sizeof text, "%g", value);
  out += text;
}

template <class T>
void append(std::string& out, const ArrayRef<T>& values);
template <class T>
void append(std::string& out, const std::vector<T>& values);

// A stream whose header may not have been included: looked at only when it is used.
template <class Stream, class>
struct Dependent {
  using type = Stream;
};

template <class T>
auto append_object(std::string& out, const T& value, int) -> decltype(to_string(value), void()) {
  out += to_string(value);
}
template <class T>
void append_object(std::string& out, const T& value, long) {
  typename Dependent<std::basic_ostringstream<char>, T>::type stream;
  stream << value;
  out += stream.str();
}

// Anything else: arithmetic types, what has a `str()` of ours, and otherwise the value's own
// operator<< (whose header is then there).
template <class T>
auto append(std::string& out, const T& value)
    -> std::enable_if_t<!std::is_convertible_v<const T&, const char*>> {
  if constexpr (std::is_integral_v<T>) {
    out += std::to_string(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    append_number(out, static_cast<double>(value));
  } else if constexpr (std::is_enum_v<T> && std::is_convertible_v<T, int>) {
    out += std::to_string(static_cast<long long>(value));
  } else if constexpr (std::is_pointer_v<T>) {
    char text[32];
    __builtin_snprintf(text, sizeof text, "%p", static_cast<const void*>(value));
    out += text;
  } else {
    append_object(out, value, 0);
  }
}

template <class T>
void append(std::string& out, const ArrayRef<T>& values) {
  out += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i) out += ", ";
    append(out, values[i]);
  }
  out += ']';
}
template <class T>
void append(std::string& out, const std::vector<T>& values) {
  append(out, ArrayRef<T>(values));
}

}  // namespace detail

// The pieces of a message, one after the other.
template <class... Pieces>
std::string str(const Pieces&... pieces) {
  std::string out;
  (detail::append(out, pieces), ...);
  return out;
}

// Becomes a RuntimeError in Python.
class Error : public std::exception {
 public:
  explicit Error(std::string message) : message_(static_cast<std::string&&>(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }
  const char* what_without_backtrace() const noexcept { return message_.c_str(); }
  const std::string& msg() const { return message_; }

 private:
  std::string message_;
};
class IndexError : public Error {
  using Error::Error;
};
class ValueError : public Error {
  using Error::Error;
};
class TypeError : public Error {
  using Error::Error;
};
class NotImplementedError : public Error {
  using Error::Error;
};

namespace detail {

template <class E, class... Pieces>
[[noreturn]] KGTORCH_COLD void fail(const char* fallback, const Pieces&... pieces) {
  if constexpr (sizeof...(Pieces) == 0)
    throw E(std::string(fallback));
  else
    throw E(str(pieces...));
}

void warn(const std::string& message);  // python.h

// TORCH_CHECK_EQ(a, b) << "more": throws at the end of the statement.
class CheckMessage {
 public:
  explicit CheckMessage(std::string text) : text_(static_cast<std::string&&>(text)) {}
  ~CheckMessage() noexcept(false) { throw Error(text_); }
  template <class T>
  CheckMessage& operator<<(const T& piece) {
    append(text_, piece);
    return *this;
  }

 private:
  std::string text_;
};

}  // namespace detail
}  // namespace c10

#define KGTORCH_CHECK(ERROR, COND, ...)                                                         \
  do {                                                                                          \
    if (C10_UNLIKELY(!(COND)))                                                                  \
      ::c10::detail::fail<::c10::ERROR>("Expected " #COND " to be true, but got false." __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)

#define TORCH_CHECK(COND, ...) KGTORCH_CHECK(Error, COND __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_INDEX(COND, ...) KGTORCH_CHECK(IndexError, COND __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_VALUE(COND, ...) KGTORCH_CHECK(ValueError, COND __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_TYPE(COND, ...) KGTORCH_CHECK(TypeError, COND __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(COND, ...) \
  KGTORCH_CHECK(NotImplementedError, COND __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_WITH(ERROR, COND, ...) KGTORCH_CHECK(ERROR, COND __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_INTERNAL_ASSERT(COND, ...)                                                       \
  do {                                                                                         \
    if (C10_UNLIKELY(!(COND)))                                                                 \
      ::c10::detail::fail<::c10::Error>("", #COND " INTERNAL ASSERT FAILED at " __FILE__       \
                                            ":" C10_STRINGIZE(__LINE__) ". " __VA_OPT__(, )    \
                                                __VA_ARGS__);                                  \
  } while (false)
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(...) static_cast<void>(0)
#define AT_ASSERT(...) TORCH_INTERNAL_ASSERT(__VA_ARGS__)
#define AT_ASSERTM(COND, ...) TORCH_CHECK(COND __VA_OPT__(, ) __VA_ARGS__)
#define AT_CHECK(COND, ...) TORCH_CHECK(COND __VA_OPT__(, ) __VA_ARGS__)
#define AT_ERROR(...) ::c10::detail::fail<::c10::Error>("" __VA_OPT__(, ) __VA_ARGS__)
#define C10_THROW_ERROR(ERROR, MESSAGE) ::c10::detail::fail<::c10::ERROR>("", MESSAGE)
#define TORCH_WARN(...) ::c10::detail::warn(::c10::str(__VA_ARGS__))
#define TORCH_WARN_ONCE(...)                                                            \
  static const bool C10_ANONYMOUS_VARIABLE(kgtorch_warned) [[maybe_unused]] = [&] {     \
    TORCH_WARN(__VA_ARGS__);                                                            \
    return true;                                                                        \
  }()

#define KGTORCH_CHECK_OP(A, B, OP)                                                       \
  if (C10_LIKELY((A)OP(B))) {                                                            \
  } else                                                                                 \
    ::c10::detail::CheckMessage(                                                         \
        ::c10::str("Check failed: " #A " " #OP " " #B " (", (A), " vs. ", (B), "). "))
#define TORCH_CHECK_EQ(A, B) KGTORCH_CHECK_OP(A, B, ==)
#define TORCH_CHECK_NE(A, B) KGTORCH_CHECK_OP(A, B, !=)
#define TORCH_CHECK_LT(A, B) KGTORCH_CHECK_OP(A, B, <)
#define TORCH_CHECK_LE(A, B) KGTORCH_CHECK_OP(A, B, <=)
#define TORCH_CHECK_GT(A, B) KGTORCH_CHECK_OP(A, B, >)
#define TORCH_CHECK_GE(A, B) KGTORCH_CHECK_OP(A, B, >=)
