// Reductions over groups within a warp.
#pragma once

#include "../cooperative_groups.h"

namespace cooperative_groups {

template <class T = void>
struct plus {
  T operator()(T a, T b) const { return a + b; }
};
template <class T = void>
struct less {
  T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T = void>
struct greater {
  T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T = void>
struct bit_and {
  T operator()(T a, T b) const { return a & b; }
};
template <class T = void>
struct bit_or {
  T operator()(T a, T b) const { return a | b; }
};
template <class T = void>
struct bit_xor {
  T operator()(T a, T b) const { return a ^ b; }
};
#define KGEMU_ANY_TYPE(name, expression) \
  template <>                            \
  struct name<void> {                    \
    template <class T>                   \
    T operator()(T a, T b) const {       \
      return expression;                 \
    }                                    \
  };
KGEMU_ANY_TYPE(plus, a + b)
KGEMU_ANY_TYPE(less, b < a ? b : a)
KGEMU_ANY_TYPE(greater, a < b ? b : a)
KGEMU_ANY_TYPE(bit_and, a & b)
KGEMU_ANY_TYPE(bit_or, a | b)
KGEMU_ANY_TYPE(bit_xor, a ^ b)
#undef KGEMU_ANY_TYPE

// Groups of a power of two combine as a tree, as the device does; others in the order of ranks.
template <class Group, class T, class Operator>
inline T reduce(const Group& group, T value, Operator&& combine, int line = __builtin_LINE()) {
  const unsigned mask = group.kgemu_mask();
  const unsigned size = static_cast<unsigned>(__builtin_popcount(mask));
  const unsigned rank = static_cast<unsigned>(__builtin_popcount(mask & details::lanes_below()));
  if ((size & (size - 1)) == 0) {
    for (unsigned step = size / 2; step > 0; step /= 2) {
      const T other =
          details::shuffle(mask, value, details::lane_of_rank(mask, rank ^ step), line);
      value = rank & step ? combine(other, value) : combine(value, other);
    }
    return value;
  }
  T result = details::shuffle(mask, value, details::lane_of_rank(mask, 0), line);
  for (unsigned other = 1; other < size; ++other)
    result = combine(result,
                     details::shuffle(mask, value, details::lane_of_rank(mask, other), line));
  return result;
}

}  // namespace cooperative_groups
