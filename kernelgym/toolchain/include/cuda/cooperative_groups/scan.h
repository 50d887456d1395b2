// Scans over groups within a warp.
#pragma once

#include "reduce.h"

namespace cooperative_groups {

template <class Group, class T, class Operator>
inline T inclusive_scan(const Group& group, T value, Operator&& combine,
                        int line = __builtin_LINE()) {
  const unsigned rank = group.thread_rank();
  for (unsigned step = 1; step < group.size(); step *= 2) {
    const T other = group.shfl_up(value, step, line);
    if (rank >= step) value = combine(other, value);
  }
  return value;
}
template <class Group, class T>
inline T inclusive_scan(const Group& group, T value, int line = __builtin_LINE()) {
  return inclusive_scan(group, value, plus<T>(), line);
}
template <class Group, class T, class Operator>
inline T exclusive_scan(const Group& group, T value, Operator&& combine,
                        int line = __builtin_LINE()) {
  const T before = group.shfl_up(inclusive_scan(group, value, combine, line), 1, line);
  return group.thread_rank() == 0 ? T() : before;
}
template <class Group, class T>
inline T exclusive_scan(const Group& group, T value, int line = __builtin_LINE()) {
  return exclusive_scan(group, value, plus<T>(), line);
}

}  // namespace cooperative_groups
