// Element types, devices, layouts, memory formats.
#pragma once
#ifdef KGTORCH_KIT  // inline functions are compiled once, in an object of their own
#pragma interface
#endif
#include "error.h"
#include "half.h"

namespace c10 {

// X(C++ type, name, torch's number, DLPack code, bits, name in Python)
#define KGTORCH_FORALL_TYPES(X)              \
  X(uint8_t, Byte, 0, 1, 8, "uint8")         \
  X(int8_t, Char, 1, 0, 8, "int8")           \
  X(int16_t, Short, 2, 0, 16, "int16")       \
  X(int, Int, 3, 0, 32, "int32")             \
  X(int64_t, Long, 4, 0, 64, "int64")        \
  X(::c10::Half, Half, 5, 2, 16, "float16")  \
  X(float, Float, 6, 2, 32, "float32")       \
  X(double, Double, 7, 2, 64, "float64")     \
  X(bool, Bool, 11, 6, 8, "bool")            \
  X(::c10::BFloat16, BFloat16, 15, 4, 16, "bfloat16") \
  X(uint16_t, UInt16, 27, 1, 16, "uint16")   \
  X(uint32_t, UInt32, 28, 1, 32, "uint32")   \
  X(uint64_t, UInt64, 29, 1, 64, "uint64")

// Types that can be stored but have no C++ type here.
#define KGTORCH_FORALL_OPAQUE_TYPES(X)              \
  X(ComplexFloat, 9, 5, 64, "complex64")            \
  X(ComplexDouble, 10, 5, 128, "complex128")        \
  X(Float8_e5m2, 23, 12, 8, "float8_e5m2")          \
  X(Float8_e4m3fn, 24, 10, 8, "float8_e4m3fn")

enum class ScalarType : int8_t {
#define X(T, NAME, NUMBER, CODE, BITS, PYTHON) NAME = NUMBER,
  KGTORCH_FORALL_TYPES(X)
#undef X
#define X(NAME, NUMBER, CODE, BITS, PYTHON) NAME = NUMBER,
  KGTORCH_FORALL_OPAQUE_TYPES(X)
#undef X
  Undefined = 45
};

// What DLPack and Python call an element type.
struct TypeFacts {
  ScalarType type;
  uint8_t code;
  uint8_t bits;
  const char* name;
  const char* python;
};

inline constexpr TypeFacts kTypeFacts[] = {
#define X(T, NAME, NUMBER, CODE, BITS, PYTHON) {ScalarType::NAME, CODE, BITS, #NAME, PYTHON},
    KGTORCH_FORALL_TYPES(X)
#undef X
#define X(NAME, NUMBER, CODE, BITS, PYTHON) {ScalarType::NAME, CODE, BITS, #NAME, PYTHON},
    KGTORCH_FORALL_OPAQUE_TYPES(X)
#undef X
    {ScalarType::Undefined, 0, 0, "Undefined", "undefined"}};

inline const TypeFacts& type_facts(ScalarType type) {
  const TypeFacts* facts = kTypeFacts;
  while (facts->type != type && facts->type != ScalarType::Undefined) ++facts;
  return *facts;
}

#define X(T, NAME, NUMBER, CODE, BITS, PYTHON) inline constexpr ScalarType k##NAME = ScalarType::NAME;
KGTORCH_FORALL_TYPES(X)
#undef X
inline constexpr ScalarType kComplexFloat = ScalarType::ComplexFloat;
inline constexpr ScalarType kComplexDouble = ScalarType::ComplexDouble;
inline constexpr ScalarType kFloat8_e5m2 = ScalarType::Float8_e5m2;
inline constexpr ScalarType kFloat8_e4m3fn = ScalarType::Float8_e4m3fn;

namespace impl {
template <ScalarType>
struct ScalarTypeToCPPType;
}
template <class T>
struct CppTypeToScalarType;
#define X(T, NAME, NUMBER, CODE, BITS, PYTHON)                       \
  namespace impl {                                                   \
  template <>                                                        \
  struct ScalarTypeToCPPType<ScalarType::NAME> {                     \
    using type = T;                                                  \
  };                                                                 \
  }                                                                  \
  template <>                                                        \
  struct CppTypeToScalarType<T> {                                    \
    static constexpr ScalarType value = ScalarType::NAME;            \
  };
KGTORCH_FORALL_TYPES(X)
#undef X
namespace impl {
template <ScalarType type>
using ScalarTypeToCPPTypeT = typename ScalarTypeToCPPType<type>::type;
}
// `long long` is a type of its own beside int64_t.
template <>
struct CppTypeToScalarType<long long> : CppTypeToScalarType<int64_t> {};
template <>
struct CppTypeToScalarType<unsigned long long> : CppTypeToScalarType<uint64_t> {};

inline const char* toString(ScalarType type) { return type_facts(type).name; }
inline size_t elementSize(ScalarType type) { return type_facts(type).bits / 8u; }
inline bool isFloatingType(ScalarType t) {
  return t == kFloat || t == kDouble || t == kHalf || t == kBFloat16 || t == kFloat8_e5m2 ||
         t == kFloat8_e4m3fn;
}
inline bool isReducedFloatingType(ScalarType t) { return t == kHalf || t == kBFloat16; }
inline bool isIntegralType(ScalarType t, bool include_bool = false) {
  return (include_bool && t == kBool) || type_facts(t).code < 2;
}
inline bool isComplexType(ScalarType t) { return type_facts(t).code == 5; }
inline std::string to_string(ScalarType type) { return toString(type); }

// What `tensor.dtype()` answers; compares with ScalarType.
class TypeMeta {
 public:
  TypeMeta() = default;
  TypeMeta(ScalarType type) : type_(type) {}
  template <class T>
  static TypeMeta Make() {
    return CppTypeToScalarType<T>::value;
  }
  ScalarType toScalarType() const { return type_; }
  operator ScalarType() const { return type_; }
  size_t itemsize() const { return elementSize(type_); }
  const char* name() const { return toString(type_); }
  template <class T>
  bool Match() const {
    return type_ == CppTypeToScalarType<T>::value;
  }

 private:
  ScalarType type_ = ScalarType::Undefined;
};
inline bool operator==(TypeMeta a, TypeMeta b) { return a.toScalarType() == b.toScalarType(); }
inline bool operator!=(TypeMeta a, TypeMeta b) { return !(a == b); }
inline bool operator==(TypeMeta a, ScalarType b) { return a.toScalarType() == b; }
inline bool operator!=(TypeMeta a, ScalarType b) { return a.toScalarType() != b; }
inline bool operator==(ScalarType a, TypeMeta b) { return a == b.toScalarType(); }
inline bool operator!=(ScalarType a, TypeMeta b) { return a != b.toScalarType(); }
inline std::string to_string(TypeMeta type) { return type.name(); }
inline ScalarType typeMetaToScalarType(TypeMeta type) { return type.toScalarType(); }
inline TypeMeta scalarTypeToTypeMeta(ScalarType type) { return type; }

enum class DeviceType : int8_t { CPU = 0, CUDA = 1 };
inline constexpr DeviceType kCPU = DeviceType::CPU;
inline constexpr DeviceType kCUDA = DeviceType::CUDA;
using DeviceIndex = int8_t;

// A device; the index -1 is the current one.
class Device {
 public:
  Device(DeviceType type, DeviceIndex index = -1) : type_(type), index_(index) {}
  Device(const std::string& name) : type_(kCPU), index_(-1) {
    if (name.compare(0, 4, "cuda") == 0) {
      type_ = kCUDA;
      if (name.size() > 5 && name[4] == ':')
        index_ = static_cast<DeviceIndex>(std::atoi(name.c_str() + 5));
    } else if (name.compare(0, 3, "cpu") != 0) {
      throw Error("Expected a device named cpu, cuda or cuda:N, got " + name);
    }
  }
  DeviceType type() const { return type_; }
  DeviceIndex index() const { return index_; }
  bool has_index() const { return index_ >= 0; }
  bool is_cuda() const { return type_ == kCUDA; }
  bool is_cpu() const { return type_ == kCPU; }
  std::string str() const {
    std::string out = is_cuda() ? "cuda" : "cpu";
    if (has_index() && is_cuda()) out += ":" + std::to_string(index_);
    return out;
  }
  bool operator==(const Device& other) const {
    return type_ == other.type_ && index_ == other.index_;
  }
  bool operator!=(const Device& other) const { return !(*this == other); }

 private:
  DeviceType type_;
  DeviceIndex index_;
};
inline std::string to_string(const Device& device) { return device.str(); }
inline std::string to_string(DeviceType type) { return type == kCUDA ? "cuda" : "cpu"; }

enum class Layout : int8_t { Strided };
inline constexpr Layout kStrided = Layout::Strided;
enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

// Streams of values, for whoever has included a stream header.
#define KGTORCH_STREAMABLE(T)                                                                   \
  template <class Char, class Traits>                                                           \
  std::basic_ostream<Char, Traits>& operator<<(std::basic_ostream<Char, Traits>& out, T value) { \
    return out << to_string(value);                                                             \
  }
KGTORCH_STREAMABLE(ScalarType)
KGTORCH_STREAMABLE(TypeMeta)
KGTORCH_STREAMABLE(const Device&)
KGTORCH_STREAMABLE(DeviceType)
template <class Char, class Traits, class T>
std::basic_ostream<Char, Traits>& operator<<(std::basic_ostream<Char, Traits>& out, ArrayRef<T> v) {
  return out << c10::str(v);
}

// A number whose type was not known when the program was written.
class Scalar {
 public:
  Scalar() = default;
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  Scalar(T value) {
    if constexpr (std::is_same_v<T, bool>) {
      kind_ = Kind::boolean;
      integer_ = value;
    } else if constexpr (std::is_integral_v<T>) {
      integer_ = static_cast<int64_t>(value);
    } else {
      kind_ = Kind::real;
      real_ = static_cast<double>(value);
    }
  }
  Scalar(Half value) : Scalar(static_cast<float>(value)) {}
  Scalar(BFloat16 value) : Scalar(static_cast<float>(value)) {}
  template <class T>
  T to() const {
    if (kind_ != Kind::real) return static_cast<T>(integer_);
    if constexpr (std::is_arithmetic_v<T>) return static_cast<T>(real_);
    else return T(static_cast<float>(real_));
  }
  double toDouble() const { return to<double>(); }
  float toFloat() const { return to<float>(); }
  int64_t toLong() const { return to<int64_t>(); }
  int toInt() const { return to<int>(); }
  bool toBool() const { return to<bool>(); }
  bool isFloatingPoint() const { return kind_ == Kind::real; }
  bool isIntegral(bool include_bool = false) const {
    return kind_ == Kind::integer || (include_bool && kind_ == Kind::boolean);
  }
  bool isBoolean() const { return kind_ == Kind::boolean; }

 private:
  enum class Kind : int8_t { integer, real, boolean };
  Kind kind_ = Kind::integer;
  int64_t integer_ = 0;
  double real_ = 0;
};

}  // namespace c10

namespace caffe2 {
using c10::TypeMeta;
}

namespace at {
inline constexpr c10::ScalarType kUInt8 = c10::kByte;
inline constexpr c10::ScalarType kInt8 = c10::kChar;
inline constexpr c10::ScalarType kInt16 = c10::kShort;
inline constexpr c10::ScalarType kInt32 = c10::kInt;
inline constexpr c10::ScalarType kInt64 = c10::kLong;
inline constexpr c10::ScalarType kFloat16 = c10::kHalf;
inline constexpr c10::ScalarType kFloat32 = c10::kFloat;
inline constexpr c10::ScalarType kFloat64 = c10::kDouble;
}  // namespace at
