"""Peak rates of GPUs, from their makers' data sheets, and the times that follow from them.

The rates are those of the boards as sold, at boost clocks and without sparsity: what no program
exceeds. Two times follow. The *floor* is what no honest call can be faster than; who is, has not
done the work. The *speed of light* is what the best imaginable program would need, and what a
candidate is told how far it is from. For that the bandwidth of memory is the measured one where the
card has been calibrated, because streams reach it exactly; arithmetic stays at the data sheet's
rate, which libraries do not reach and others may.

Which arithmetic counts follows from the precision class, by what keeps its error budget:

=================== ===================== =========================================================
class               products              convolutions
=================== ===================== =========================================================
``default``         as in ``ieee``        as in ``tf32`` (torch's own choice)
``ieee``            fp32, or a third of the fp16 rate: three products of halves of 11 bits each
                    make one of 22, nearly fp32's 24
``tf32``            fp16's, whose significand is as long as TF32's; TF32's where there is none
``fp16``, ``bf16``  fp16's
=================== ===================== =========================================================

FLOPs are those that the reference does. A program that needs fewer (a triangular factor's other
half, Winograd's convolutions, a sum pulled through a product) can be faster than that arithmetic;
it is then measured by the traffic of memory alone, and the verdict says so.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from kernelgym.judge.physics import DeviceModel

__all__ = ["GPUS", "Light", "Work", "floor_seconds", "gpu_model", "light_of", "with_bandwidth"]

_TERA, _GIGA, _MEGA = 1e12, 1e9, 2**20
# Between the end of one kernel and the start of the next in one stream.
_LAUNCH_SECONDS = 1.5e-6
# L2 delivers some times what DRAM does; data sheets do not say how much, and no bound rests on it.
_L2_OVER_DRAM = 2.0
_SPLIT_PRODUCTS = 3


def _gpu(
    name: str,
    dram: float,
    fp32: float,
    multiprocessors: int,
    clock: float,
    *,
    tf32: float = 0.0,
    fp16: float = 0.0,
    fp8: float = 0.0,
    fp64: float = 0.0,
    l2: float = 0.0,
) -> DeviceModel:
    """`dram` in GB/s, rates in TFLOP/s (`fp32` outside tensor cores), `clock` in GHz, `l2` in MiB."""
    bandwidth = dram * _GIGA
    return DeviceModel(
        name=name,
        dram_bandwidth=bandwidth,
        l2_bandwidth=_L2_OVER_DRAM * bandwidth,
        fp32_rate=fp32 * _TERA,
        multiprocessors=multiprocessors,
        clock=clock * _GIGA,
        launch_seconds=_LAUNCH_SECONDS,
        tf32_rate=tf32 * _TERA,
        fp16_rate=fp16 * _TERA,
        fp8_rate=fp8 * _TERA,
        fp64_rate=fp64 * _TERA,
        l2_bytes=int(l2 * _MEGA),
    )


# By the name that the driver gives. Sources: NVIDIA's data sheets of H200 (November 2023), H100
# (2022), A100 (2021), L4 and L40S (2023), T4 (2019), V100 (2020), A10 (2021), the architecture
# papers of GH100 (2022), GA100 (2020), GA102 (2021) and AD102 (2022). Where a data sheet gives
# tensor rates with sparsity only, they are halved here; of a card whose rate depends on the type
# that products are summed in, the higher one stands. The L2 of an H200 is the one of a whole GH100.
GPUS: tuple[DeviceModel, ...] = (
    _gpu("NVIDIA H200", 4800, 67, 132, 1.98, tf32=494.5, fp16=989.5, fp8=1979, fp64=67, l2=60),
    _gpu("NVIDIA H100 80GB HBM3", 3350, 67, 132, 1.98,
         tf32=494.5, fp16=989.5, fp8=1979, fp64=67, l2=50),
    _gpu("NVIDIA H100 PCIe", 2000, 51, 114, 1.755, tf32=378, fp16=756.5, fp8=1513, fp64=51, l2=50),
    _gpu("NVIDIA A100-SXM4-80GB", 2039, 19.5, 108, 1.41, tf32=156, fp16=312, fp64=19.5, l2=40),
    _gpu("NVIDIA A100 80GB PCIe", 1935, 19.5, 108, 1.41, tf32=156, fp16=312, fp64=19.5, l2=40),
    _gpu("NVIDIA A100-SXM4-40GB", 1555, 19.5, 108, 1.41, tf32=156, fp16=312, fp64=19.5, l2=40),
    _gpu("NVIDIA A100-PCIE-40GB", 1555, 19.5, 108, 1.41, tf32=156, fp16=312, fp64=19.5, l2=40),
    _gpu("NVIDIA A10", 600, 31.2, 72, 1.695, tf32=62.5, fp16=125, fp64=0.49, l2=6),
    _gpu("NVIDIA L40S", 864, 91.6, 142, 2.52, tf32=183, fp16=362, fp8=733, fp64=1.43, l2=96),
    _gpu("NVIDIA L4", 300, 30.3, 58, 2.04, tf32=60, fp16=121, fp8=242.5, fp64=0.49, l2=48),
    _gpu("NVIDIA GeForce RTX 4090", 1008, 82.6, 128, 2.52,
         tf32=82.6, fp16=330.3, fp8=660.6, fp64=1.29, l2=72),
    _gpu("NVIDIA GeForce RTX 3090", 936, 35.6, 82, 1.695, tf32=35.6, fp16=142, fp64=0.56, l2=6),
    _gpu("Tesla V100-SXM2-32GB", 900, 15.7, 80, 1.53, fp16=125, fp64=7.8, l2=6),
    _gpu("Tesla V100-SXM2-16GB", 900, 15.7, 80, 1.53, fp16=125, fp64=7.8, l2=6),
    _gpu("Tesla T4", 320, 8.1, 40, 1.59, fp16=65, fp64=0.25, l2=4),
)  # fmt: skip


class Work(NamedTuple):
    """What one call of a reference takes at the least.

    Attributes:
        nbytes: Bytes of inputs, weights and outputs, each once.
        product_flops: FLOPs of matrix products.
        convolution_flops: FLOPs of convolutions.
    """

    nbytes: float
    product_flops: float = 0.0
    convolution_flops: float = 0.0


class Light(NamedTuple):
    """The least time for some work, and for its two parts, in seconds."""

    traffic: float
    arithmetic: float

    @property
    def seconds(self) -> float:
        """The larger of the two."""
        return max(self.traffic, self.arithmetic)


def gpu_model(name: str) -> DeviceModel | None:
    """The rates of a GPU by the name that its driver gives, or None where they are not known."""
    return next((model for model in GPUS if model.name == name), None)


def light_of(model: DeviceModel, work: Work, precision: str) -> Light:
    """How long the best imaginable program takes; the module's docstring says what that is.

    Args:
        model: The GPU's rates.
        work: What is to be done.
        precision: The precision class.
    """
    short = max(model.fp16_rate, model.tf32_rate, model.fp32_rate)
    exact = max(model.fp32_rate, model.fp16_rate / _SPLIT_PRODUCTS)
    products = exact if precision in ("default", "ieee") else short
    convolutions = exact if precision == "ieee" else short
    arithmetic = work.product_flops / products + work.convolution_flops / convolutions
    return Light(work.nbytes / model.dram_bandwidth, arithmetic)


def with_bandwidth(model: DeviceModel, dram: float) -> DeviceModel:
    """The same GPU with a measured bandwidth of its memory, in bytes per second."""
    return dataclasses.replace(model, dram_bandwidth=dram)


def floor_seconds(model: DeviceModel, nbytes: float, l2_bytes: float) -> float:
    """The least time in which a call can have moved its inputs and outputs.

    What the last kernel wrote may still lie in L2 when the call ends. Arithmetic sets no floor: a
    better algorithm may do less of it.

    Args:
        model: The GPU's rates, as sold.
        nbytes: Bytes of the inputs and outputs, each once.
        l2_bytes: Size of L2.
    """
    return max(nbytes - l2_bytes, 0.0) / model.dram_bandwidth
