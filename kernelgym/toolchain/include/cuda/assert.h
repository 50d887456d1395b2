// assert() in kernels is a finding, in host code what it always was. No include guard: NDEBUG
// decides anew at each inclusion.
#include "kgemu/core.h"

#ifndef KGEMU_ASSERT
#define KGEMU_ASSERT
extern "C" [[noreturn]] void __assert_fail(const char*, const char*, unsigned, const char*) noexcept;
[[noreturn]] inline void kgemu_assert_failed(const char* expression, const char* file,
                                             unsigned line, const char* function) {
  if (kgemu_in_kernel()) kgemu_assert_fail(expression, file, line, function);
  __assert_fail(expression, file, line, function);
}
#endif

#undef assert
#ifdef NDEBUG
#define assert(expression) (static_cast<void>(0))
#else
#define assert(expression)           \
  (static_cast<bool>(expression)     \
       ? static_cast<void>(0)        \
       : kgemu_assert_failed(#expression, __FILE__, __LINE__, __func__))
#endif
