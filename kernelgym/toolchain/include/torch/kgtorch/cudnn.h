// A cuDNN handle for each device, set to torch's current stream.
#pragma once
#include <cudnn.h>

#include "cuda.h"

namespace at::native {

inline cudnnHandle_t getCudnnHandle() {
  static cudnnHandle_t handles[16];
  const int device = c10::cuda::current_device();
  TORCH_CHECK(device < 16, "Expected a device index below 16, got ", device);
  if (!handles[device]) AT_CUDNN_CHECK(cudnnCreate(&handles[device]));
  AT_CUDNN_CHECK(cudnnSetStream(handles[device], c10::cuda::getCurrentCUDAStream().stream()));
  return handles[device];
}

}  // namespace at::native
