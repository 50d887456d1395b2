"""Programs in KernelBench's form: from an expression, and random ones of one to four operators."""

import random

POINTWISE = (
    "torch.relu({x})",
    "torch.sigmoid({x})",
    "torch.tanh({x})",
    "F.gelu({x})",
    "F.gelu({x}, approximate='tanh')",
    "F.silu({x})",
    "F.mish({x})",
    "F.hardswish({x})",
    "F.softplus({x})",
    "F.leaky_relu({x}, 0.2)",
    "F.elu({x})",
    "torch.clamp({x}, -0.5, 0.75)",
    "{x} * 1.5 + 0.25",
    "{x} * torch.sigmoid({x})",
    "torch.exp(-{x} * {x})",
    "{x} - {x}.abs()",
)


class Composer:
    """Builds one program; `shape` is the shape of the value so far."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.init = []
        self.forward = []
        rank = self.random.choice((2, 2, 3, 4, 4, 5))
        batch = self.random.randint(2, 5)
        channels = self.random.choice((4, 6, 8, 12))
        spatial = {2: (), 3: (33,), 4: (13, 18), 5: (6, 9, 7)}[rank]
        self.shape = (batch, channels if rank > 2 else self.random.choice((24, 70, 129)), *spatial)
        self.input_shape = self.shape
        self.kinds = []

    @property
    def dims(self):
        return len(self.shape) - 2

    def apply(self, expression):
        self.forward.append(f"x = {expression.format(x='x')}")

    def module(self, expression):
        name = f"m{len(self.init)}"
        self.init.append(f"self.{name} = {expression}")
        self.forward.append(f"x = self.{name}(x)")

    def pointwise(self):
        self.apply(self.random.choice(POINTWISE))

    def parameter(self):
        name = f"p{len(self.init)}"
        sizes = tuple(n if d == 1 else 1 for d, n in enumerate(self.shape))[1:]
        self.init.append(f"self.{name} = nn.Parameter(torch.randn({sizes}))")
        self.forward.append(f"x = x {self.random.choice('+-*')} self.{name}")

    def reduction(self):
        dim = self.random.randrange(1, len(self.shape))
        name = self.random.choice(("sum", "mean", "amax", "amin", "logsumexp", "norm", "var"))
        expression = {
            "norm": f"torch.linalg.vector_norm(x, dim={dim}, keepdim=True)",
            "var": f"torch.var(x, dim={dim}, keepdim=True)",
        }.get(name, f"torch.{name}(x, dim={dim}, keepdim=True)")
        self.apply(expression)
        self.shape = tuple(1 if d == dim else n for d, n in enumerate(self.shape))

    def softmax(self):
        dim = self.random.randrange(1, len(self.shape))
        self.apply(f"F.{self.random.choice(('softmax', 'log_softmax'))}(x, dim={dim})")

    def norm(self):
        channels, dims = self.shape[1], self.dims
        kinds = ["layer"] + (["group", "batch", "instance"] if dims else ["batch"])
        kind = self.random.choice(kinds)
        if kind == "layer":
            self.module(f"nn.LayerNorm({self.shape[1:]})")
        elif kind == "group":
            groups = max(g for g in (1, 2, 3, 4) if channels % g == 0)
            self.module(f"nn.GroupNorm({groups}, {channels})")
        else:
            name = {"batch": "BatchNorm", "instance": "InstanceNorm"}[kind]
            self.module(f"nn.{name}{max(dims, 1)}d({channels})")

    def linear(self):
        features = self.random.choice((5, 16, 37, 64))
        bias = self.random.choice((True, False))
        self.module(f"nn.Linear({self.shape[-1]}, {features}, bias={bias})")
        self.shape = (*self.shape[:-1], features)

    def convolution(self):
        channels, dims = self.shape[1], self.dims
        groups = self.random.choice([g for g in (1, 1, 2, channels) if channels % g == 0])
        out = groups * self.random.randint(1, 4)
        kernel, stride = self.random.choice((1, 2, 3)), self.random.choice((1, 1, 2))
        padding = self.random.randint(0, kernel // 2)
        transposed = self.random.random() < 0.3
        name = f"nn.Conv{'Transpose' if transposed else ''}{dims}d"
        self.module(
            f"{name}({channels}, {out}, {kernel}, stride={stride}, padding={padding}, "
            f"groups={groups})"
        )
        if transposed:
            spatial = tuple((n - 1) * stride - 2 * padding + kernel for n in self.shape[2:])
        else:
            spatial = tuple((n + 2 * padding - kernel) // stride + 1 for n in self.shape[2:])
        self.shape = (self.shape[0], out, *spatial)

    def pool(self):
        dims = self.dims
        kind = self.random.choice(("Max", "Avg", "AdaptiveAvg"))
        if kind == "AdaptiveAvg":
            self.module(f"nn.AdaptiveAvgPool{dims}d(1)")
            self.shape = (*self.shape[:2], *(1,) * dims)
            return
        kernel = self.random.choice((2, 3))
        stride, padding = self.random.choice((1, 2)), self.random.choice((0, 1))
        self.module(f"nn.{kind}Pool{dims}d({kernel}, stride={stride}, padding={padding})")
        spatial = tuple((n + 2 * padding - kernel) // stride + 1 for n in self.shape[2:])
        self.shape = (*self.shape[:2], *spatial)

    def step(self):
        kinds = ["pointwise", "parameter", "softmax", "norm", "reduction", "linear"]
        if self.dims and min(self.shape[2:]) >= 3:
            kinds += ["convolution", "convolution", "pool"]
        kind = self.random.choice(kinds)
        # Normalising single elements gives 0 or an error in torch itself.
        if kind in ("norm", "softmax") and min(self.shape[1:]) < 2:
            kind = "pointwise"
        getattr(self, kind)()
        self.kinds.append(kind)


def compose(seed):
    """The text of a program, determined by the seed."""
    composer = Composer(seed)
    for _ in range(composer.random.randint(1, 4)):
        composer.step()
    init = "\n        ".join(["super().__init__()", *composer.init])
    forward = "\n        ".join([*composer.forward, "return x"])
    return f'''"""{", ".join(composer.kinds)}."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        {init}

    def forward(self, x):
        {forward}


def get_inputs():
    return [torch.rand{composer.input_shape}]


def get_init_inputs():
    return []
'''


def source_of(forward, *shapes, init="pass"):
    """A program whose forward returns an expression of x, y, z."""
    names = "xyz"[: len(shapes)]
    return f"""
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super(Model, self).__init__()
        {init}

    def forward(self, {", ".join(names)}):
        return {forward}


def get_inputs():
    return [{", ".join(f"torch.rand{shape}" for shape in shapes)}]


def get_init_inputs():
    return []
"""
