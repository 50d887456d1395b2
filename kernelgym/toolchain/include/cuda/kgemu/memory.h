// Loads and stores with cache hints, and atomics.
#pragma once

#include "../vector_types.h"
#include "qualifiers.h"

#define KGEMU_LOAD(name)            \
  template <class T>                \
  KGEMU_INLINE T name(const T* p) { \
    return *p;                      \
  }
KGEMU_LOAD(__ldg)
KGEMU_LOAD(__ldca)
KGEMU_LOAD(__ldcg)
KGEMU_LOAD(__ldcs)
KGEMU_LOAD(__ldlu)
KGEMU_LOAD(__ldcv)
#undef KGEMU_LOAD

namespace kgemu {
template <class T>
struct Identity {
  using type = T;
};
}  // namespace kgemu

#define KGEMU_STORE(name)                                              \
  template <class T>                                                   \
  KGEMU_INLINE void name(T* p, typename kgemu::Identity<T>::type value) { \
    *p = value;                                                        \
  }
KGEMU_STORE(__stwb)
KGEMU_STORE(__stcg)
KGEMU_STORE(__stcs)
KGEMU_STORE(__stwt)
#undef KGEMU_STORE

// One atomic under its three scopes. Overloads, no templates: CUDA converts the operand.
#define KGEMU_ATOMIC_SCOPED(T, name, expression)                    \
  KGEMU_INLINE T name(T* address, T value) {                        \
    return kgemu::atomic_update(address, [=](T old) -> T {          \
      (void)old;                                                    \
      return expression;                                            \
    });                                                             \
  }
#define KGEMU_ATOMIC(T, name, expression)              \
  KGEMU_ATOMIC_SCOPED(T, name, expression)             \
  KGEMU_ATOMIC_SCOPED(T, name##_block, expression)     \
  KGEMU_ATOMIC_SCOPED(T, name##_system, expression)

#define KGEMU_ATOMIC_INTEGERS(name, expression)           \
  KGEMU_ATOMIC(int, name, expression)                     \
  KGEMU_ATOMIC(unsigned int, name, expression)            \
  KGEMU_ATOMIC(unsigned long long, name, expression)

// Addition wraps, as on the device: done without signs.
KGEMU_ATOMIC(int, atomicAdd, static_cast<int>(static_cast<unsigned>(old) + static_cast<unsigned>(value)))
KGEMU_ATOMIC(unsigned int, atomicAdd, old + value)
KGEMU_ATOMIC(unsigned long long, atomicAdd, old + value)
KGEMU_ATOMIC(float, atomicAdd, old + value)
KGEMU_ATOMIC(double, atomicAdd, old + value)
KGEMU_ATOMIC(float2, atomicAdd, float2(old.x + value.x, old.y + value.y))
KGEMU_ATOMIC(float4, atomicAdd,
             float4(old.x + value.x, old.y + value.y, old.z + value.z, old.w + value.w))
KGEMU_ATOMIC(int, atomicSub, static_cast<int>(static_cast<unsigned>(old) - static_cast<unsigned>(value)))
KGEMU_ATOMIC(unsigned int, atomicSub, old - value)
KGEMU_ATOMIC_INTEGERS(atomicExch, value)
KGEMU_ATOMIC(float, atomicExch, value)
KGEMU_ATOMIC_INTEGERS(atomicMin, old < value ? old : value)
KGEMU_ATOMIC(long long, atomicMin, old < value ? old : value)
KGEMU_ATOMIC_INTEGERS(atomicMax, old > value ? old : value)
KGEMU_ATOMIC(long long, atomicMax, old > value ? old : value)
KGEMU_ATOMIC_INTEGERS(atomicAnd, old & value)
KGEMU_ATOMIC_INTEGERS(atomicOr, old | value)
KGEMU_ATOMIC_INTEGERS(atomicXor, old ^ value)
KGEMU_ATOMIC(unsigned int, atomicInc, old >= value ? 0u : old + 1u)
KGEMU_ATOMIC(unsigned int, atomicDec, (old == 0u || old > value) ? value : old - 1u)

#undef KGEMU_ATOMIC_INTEGERS

#define KGEMU_CAS_SCOPED(T, name)                                          \
  KGEMU_INLINE T name(T* address, T compare, T value) {                    \
    return kgemu::atomic_update(                                           \
        address, [=](T old) -> T { return old == compare ? value : old; }); \
  }
#define KGEMU_CAS(T)                    \
  KGEMU_CAS_SCOPED(T, atomicCAS)        \
  KGEMU_CAS_SCOPED(T, atomicCAS_block)  \
  KGEMU_CAS_SCOPED(T, atomicCAS_system)
KGEMU_CAS(int)
KGEMU_CAS(unsigned int)
KGEMU_CAS(unsigned short)
KGEMU_CAS(unsigned long long)
#undef KGEMU_CAS
#undef KGEMU_CAS_SCOPED
