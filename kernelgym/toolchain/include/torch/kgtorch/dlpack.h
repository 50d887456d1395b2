// DLPack 1.x: the parts that exchange a strided tensor with Python, and its C exchange API.
// Layouts as published in dlpack.h; names prefixed, so that a real dlpack.h may be included too.
#pragma once
#ifdef KGTORCH_KIT  // inline functions are compiled once, in an object of their own
#pragma interface
#endif
#include <stddef.h>
#include <stdint.h>

namespace kgtorch {

struct DLVersion {
  uint32_t major;
  uint32_t minor;
};

struct DLDev {
  int32_t type;  // 1 host, 2 CUDA
  int32_t index;
};

struct DLType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DLView {
  void* data;
  DLDev device;
  int32_t ndim;
  DLType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

struct DLManaged {
  DLVersion version;
  void* manager;
  void (*deleter)(DLManaged* self);
  uint64_t flags;
  DLView tensor;
};

// The form before version 1.0, which torch before 2.10 takes from a capsule.
struct DLManagedLegacy {
  DLView tensor;
  void* manager;
  void (*deleter)(DLManagedLegacy* self);
};

// The table in the capsule torch.Tensor.__dlpack_c_exchange_api__. All calls want the GIL.
struct DLExchange {
  DLVersion version;
  DLExchange* previous;
  int (*allocate)(DLView* prototype, DLManaged** out, void* context,
                  void (*set_error)(void* context, const char* kind, const char* message));
  int (*export_object)(void* object, DLManaged** out);
  int (*import_object)(DLManaged* tensor, void** out);
  int (*view_object)(void* object, DLView* out);  // may be null
  int (*current_stream)(int32_t device_type, int32_t device_index, void** out);
};

}  // namespace kgtorch
