#pragma once
void launch_relu(const float* in, float* out, int n, cudaStream_t stream);
