import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# The filter is kept twice: as conv1d.weight (out, in, k), and packed as (in, k, out) so that
# neighbouring threads, which compute neighbouring output channels, read neighbouring weights.
source = """
#include <torch/extension.h>
__global__ void conv1d_packed(const float* x, const float* w, float* y, int cin, int cout, int len, int k, int out_len) {
    int co = threadIdx.x, o = blockIdx.x, n = blockIdx.y;
    if (co >= cout) return;
    float acc = 0.f;
    for (int ci = 0; ci < cin; ++ci)
        for (int t = 0; t < k; ++t)
            acc += x[(n * cin + ci) * len + o + t] * w[(ci * k + t) * cout + co];
    y[(n * cout + co) * out_len + o] = acc;
}
torch::Tensor conv1d_packed_forward(torch::Tensor x, torch::Tensor w, int k) {
    int n = x.size(0), cin = x.size(1), len = x.size(2), cout = w.size(1), out_len = len - k + 1;
    auto y = torch::empty({n, cout, out_len}, x.options());
    conv1d_packed<<<dim3(out_len, n), 32>>>(x.data_ptr<float>(), w.data_ptr<float>(), y.data_ptr<float>(), cin, cout, len, k, out_len);
    return y;
}
"""
ext = load_inline(name="conv1d_packed", cpp_sources="torch::Tensor conv1d_packed_forward(torch::Tensor x, torch::Tensor w, int k);", cuda_sources=source, functions=["conv1d_packed_forward"])


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=False):
        super().__init__()
        assert out_channels <= 32 and (stride, padding, dilation, groups, bias) == (1, 0, 1, 1, False)
        self.kernel_size = kernel_size
        self.conv1d = nn.Conv1d(in_channels, out_channels, kernel_size, bias=False)
        self.register_buffer("packed", torch.empty(in_channels * kernel_size, out_channels), persistent=False)
        self._pack()
        self.register_load_state_dict_post_hook(lambda module, keys: module._pack())

    def _pack(self):
        with torch.no_grad():
            w = self.conv1d.weight
            self.packed = w.permute(1, 2, 0).reshape(-1, w.shape[0]).contiguous()

    def forward(self, x):
        return ext.conv1d_packed_forward(x, self.packed, self.kernel_size)
