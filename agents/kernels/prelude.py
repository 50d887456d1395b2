"""CUDA C++ that generated kernels share; a file gets the parts that its kernels name."""

from __future__ import annotations

__all__ = ["prelude_for"]

_PARTS = (
    (
        ("Pack2",),
        """\
// Two neighbouring floats, moved as one.
union Pack2 {
  float2 vector;
  float lane[2];
};
""",
    ),
    (
        ("Pack4",),
        """\
// Four neighbouring floats, moved as one.
union Pack4 {
  float4 vector;
  float lane[4];
};
""",
    ),
    (
        ("Sum()",),
        """\
struct Sum {
  template <typename T>
  __device__ T operator()(T a, T b) const { return a + b; }
};
""",
    ),
    (
        ("Product()",),
        """\
struct Product {
  template <typename T>
  __device__ T operator()(T a, T b) const { return a * b; }
};
""",
    ),
    (
        ("Max()", "<Max>"),
        """\
struct Max {  // NaN wins
  template <typename T>
  __device__ T operator()(T a, T b) const { return b > a || b != b ? b : a; }
};
""",
    ),
    (
        ("Min()", "<Min>"),
        """\
struct Min {  // NaN wins
  template <typename T>
  __device__ T operator()(T a, T b) const { return b < a || b != b ? b : a; }
};
""",
    ),
    (
        ("Or()",),
        """\
struct Or {
  __device__ bool operator()(bool a, bool b) const { return a || b; }
};
""",
    ),
    (
        ("And()",),
        """\
struct And {
  __device__ bool operator()(bool a, bool b) const { return a && b; }
};
""",
    ),
    (
        ("Candidate",),
        """\
// An element and where it stands in its row.
struct Candidate {
  float value;
  int64_t position;
};

// The better element by Better, and of equal ones the first.
template <typename Better>
struct First {
  __device__ Candidate operator()(Candidate a, Candidate b) const {
    if (a.value == b.value || (a.value != a.value && b.value != b.value)) {
      return a.position <= b.position ? a : b;
    }
    const float best = Better()(a.value, b.value);
    return best == b.value || (best != best && b.value != b.value) ? b : a;
  }
};
""",
    ),
    (
        ("warp_reduce", "block_reduce"),
        """\
template <typename T>
__device__ T from_lane(T value, int distance) {
  return __shfl_xor_sync(0xffffffffu, value, distance);
}
""",
    ),
    (
        ("(best",),
        """\
__device__ Candidate from_lane(Candidate value, int distance) {
  return {__shfl_xor_sync(0xffffffffu, value.value, distance),
          __shfl_xor_sync(0xffffffffu, value.position, distance)};
}
""",
    ),
    (
        ("warp_reduce", "block_reduce"),
        """\
// What all 32 lanes hold, combined; every lane gets it.
template <typename T, typename Combine>
__device__ T warp_reduce(T value, Combine combine) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value = combine(value, from_lane(value, distance));
  }
  return value;
}
""",
    ),
    (
        ("block_reduce",),
        """\
// What all threads of the block hold, combined; every thread gets it.
template <int THREADS, typename T, typename Combine>
__device__ T block_reduce(T value, Combine combine) {
  __shared__ T parts[THREADS / 32];
  value = warp_reduce(value, combine);
  __syncthreads();  // an earlier reduction's parts have been read
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  value = parts[0];
  for (int warp = 1; warp < THREADS / 32; ++warp) value = combine(value, parts[warp]);
  return value;
}
""",
    ),
)


def prelude_for(kernels: str) -> str:
    """The parts that the kernels' text uses, in order."""
    return "\n".join(text for names, text in _PARTS if any(name in kernels for name in names))
