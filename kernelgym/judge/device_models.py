"""Models of devices that can be bought, for what is decided without having one."""

from __future__ import annotations

from kernelgym.judge.physics import DeviceModel

__all__ = ["H200"]

# Bandwidth and fp32 rate: NVIDIA's data sheet of the H200 SXM (4.8 TB/s, 67 TFLOP/s outside tensor
# cores). Multiprocessors and boost clock: those of the GH100 chip as sold in SXM modules (132,
# 1.98 GHz). L2: 5.5 TB/s, as microbenchmarks of the same chip find. A launch: an eager operator
# seldom takes less than 5 us from one to the next.
H200 = DeviceModel(
    name="H200",
    dram_bandwidth=4.8e12,
    l2_bandwidth=5.5e12,
    fp32_rate=67e12,
    multiprocessors=132,
    clock=1.98e9,
    launch_seconds=5e-6,
)
"""NVIDIA H200 SXM."""
