"""Peak rates of GPUs, from their makers' data sheets.

The rates are those of the boards as sold, at boost clocks: what no program exceeds, and so what
bounds a measured time from below. A GPU that is not in the table is judged without such a bound.
"""

from __future__ import annotations

from kernelgym.judge.physics import DeviceModel

__all__ = ["GPUS", "floor_seconds", "gpu_model"]

_TERA, _GIGA = 1e12, 1e9
# Between the end of one kernel and the start of the next in one stream.
_LAUNCH_SECONDS = 1.5e-6
# L2 delivers some times what DRAM does; data sheets do not say how much, and no bound rests on it.
_L2_OVER_DRAM = 2.0


def _gpu(name: str, dram: float, fp32: float, multiprocessors: int, clock: float) -> DeviceModel:
    """`dram` in GB/s, `fp32` in TFLOP/s outside tensor cores, `clock` in GHz."""
    bandwidth = dram * _GIGA
    return DeviceModel(
        name=name,
        dram_bandwidth=bandwidth,
        l2_bandwidth=_L2_OVER_DRAM * bandwidth,
        fp32_rate=fp32 * _TERA,
        multiprocessors=multiprocessors,
        clock=clock * _GIGA,
        launch_seconds=_LAUNCH_SECONDS,
    )


# By the name that the driver gives. Sources: NVIDIA's data sheets of H200 (November 2023), H100
# (2022), A100 (2021), L4 and L40S (2023), T4 (2019), V100 (2020), A10 (2021), and the architecture
# papers of GA102 (2021) and AD102 (2022).
GPUS: tuple[DeviceModel, ...] = (
    _gpu("NVIDIA H200", 4800, 67, 132, 1.98),
    _gpu("NVIDIA H100 80GB HBM3", 3350, 67, 132, 1.98),
    _gpu("NVIDIA H100 PCIe", 2000, 51, 114, 1.755),
    _gpu("NVIDIA A100-SXM4-80GB", 2039, 19.5, 108, 1.41),
    _gpu("NVIDIA A100 80GB PCIe", 1935, 19.5, 108, 1.41),
    _gpu("NVIDIA A100-SXM4-40GB", 1555, 19.5, 108, 1.41),
    _gpu("NVIDIA A100-PCIE-40GB", 1555, 19.5, 108, 1.41),
    _gpu("NVIDIA A10", 600, 31.2, 72, 1.695),
    _gpu("NVIDIA L40S", 864, 91.6, 142, 2.52),
    _gpu("NVIDIA L4", 300, 30.3, 58, 2.04),
    _gpu("NVIDIA GeForce RTX 4090", 1008, 82.6, 128, 2.52),
    _gpu("NVIDIA GeForce RTX 3090", 936, 35.6, 82, 1.695),
    _gpu("Tesla V100-SXM2-32GB", 900, 15.7, 80, 1.53),
    _gpu("Tesla V100-SXM2-16GB", 900, 15.7, 80, 1.53),
    _gpu("Tesla T4", 320, 8.1, 40, 1.59),
)


def gpu_model(name: str) -> DeviceModel | None:
    """The rates of a GPU by the name that its driver gives, or None where they are not known."""
    return next((model for model in GPUS if model.name == name), None)


def floor_seconds(model: DeviceModel, nbytes: float, l2_bytes: float) -> float:
    """The least time in which a call can have moved its inputs and outputs.

    What the last kernel wrote may still lie in L2 when the call ends. Arithmetic sets no floor: a
    better algorithm may do less of it.

    Args:
        model: The GPU's rates.
        nbytes: Bytes of the inputs and outputs, each once.
        l2_bytes: Size of L2.
    """
    return max(nbytes - l2_bytes, 0.0) / model.dram_bandwidth
