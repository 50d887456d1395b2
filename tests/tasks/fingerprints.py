"""Checks task files against recorded numerical fingerprints.

    python -m tests.tasks.fingerprints L1/19 L2        # tasks and whole levels

A fingerprint is the output statistics of a task on inputs and weights that follow from names and
shapes alone, at reduced sizes; `fingerprints/level*.json.gz` hold them with the recorded shapes,
state layout, FLOPs and bytes.
"""

from __future__ import annotations

import functools
import gzip
import inspect
import json
import math
import pathlib
import sys
import time
import zlib

import numpy as np
import torch

from kernelgym import tasks
from kernelgym.tasks.trace import fake_tensors

# Two records leave out the products inside torch's fused attention, which facts count: a layer does
# 4 · batch · heads · queries · keys · head size.
_ATTENTION_FLOPS = {
    "L3/28": 6 * 4 * 197 * 8 * 2 * 2 * 64,
    "L3/32": 6 * 4 * 10 * 4 * 2 * 2 * 32,
}

# Networks of hundreds of operators, a pass over which takes a second or more even without values.
DEEP = {f"L3/{number}" for number in (10, 15, 16, 20, 22, 23, 24, 29, 30, 34)}

_FOLDER = pathlib.Path(__file__).parent / "fingerprints"


@functools.cache
def _level(level):
    with gzip.open(_FOLDER / f"level{level}.json.gz", "rt") as file:
        return {record["id"]: record for record in json.load(file)}


def record(task_id):
    level, number = task_id[1:].split("/")
    return _level(int(level))[int(number)]


def ids():
    return [f"L{level}/{number}" for level in (1, 2, 3) for number in sorted(_level(level))]


def fill_rules(task_id):
    """(state key, shape, rule) of each entry that a case fills."""
    return record(task_id)["fingerprint"]["fill"]


def cases(task_id):
    """The (variant, mode) pairs recorded for a task; "train_and_eval" stands for both modes."""
    return [
        (variant, mode)
        for variant, modes in record(task_id)["fingerprint"]["cases"].items()
        for mode in ("train", "eval", "train_and_eval")
        if mode in modes
    ]


def _values(args):
    return [_value(arg) for arg in args]


def _value(arg):
    return tuple(arg["value"]) if arg["type"] == "tuple" else arg["value"]


def build(task_id, seed=None):
    """The task's `Model` with the fingerprint's reduced constructor arguments."""
    args = _values(record(task_id)["fingerprint"]["init_args"])
    model_class = tasks.get(task_id).module("full").Model
    if seed is not None:
        torch.manual_seed(seed)
    return model_class(*args)


class _Draws:
    """Generators that depend on the seed, the task and a name only."""

    def __init__(self, task_id):
        level, number = task_id[1:].split("/")
        self.prefix = [record(task_id)["fingerprint"]["seed"], int(level), int(number)]

    def __call__(self, key):
        return np.random.default_rng([*self.prefix, zlib.crc32(key.encode())])


def fill(task_id, model):
    """Sets every entry of the state to its recorded values."""
    generator = _Draws(task_id)
    state = model.state_dict()
    for key, shape, rule in fill_rules(task_id):
        if rule is None:
            if key.endswith("num_batches_tracked"):
                state[key].zero_()
            continue
        base, scale, absolute = rule
        noise = generator(key).standard_normal(shape, dtype=np.float32)
        if absolute:
            noise = np.abs(noise)
        state[key].copy_(torch.from_numpy(np.asarray(np.float32(base) + np.float32(scale) * noise)))


def inputs(task_id, variant):
    generator = _Draws(task_id)
    scale = np.float32(generator("input:scale").random())
    return [
        _input(generator, f"input:{k}", spec, variant, scale)
        for k, spec in enumerate(record(task_id)["fingerprint"]["inputs"])
    ]


def _input(generator, key, spec, variant, scale):
    law, shape = spec["distribution"], spec["shape"]
    if law == "python float":
        return spec["value"]
    if law.startswith("randint"):
        low, high = law[len("randint[") : -1].split(",")
        return torch.from_numpy(generator(key).integers(int(low), int(high), shape, dtype=np.int64))
    if law.startswith(("bernoulli", "random sign")):
        bits = generator(key).integers(0, 2, shape, dtype=np.int64)
        bits = bits.astype(bool) if law.startswith("bernoulli") else bits.astype(np.float32) * 2 - 1
        return torch.from_numpy(bits)
    plain = law == "uniform[0,1)"
    structured = law.startswith(("symmetrised", "upper-triangular", "lower-triangular"))
    if variant == "signed" and (plain or structured):
        noise = generator(f"{key}:signed").standard_normal(shape, dtype=np.float32)
        return torch.from_numpy(np.float32(2) * noise)
    if variant == "small" and plain:
        noise = generator(f"{key}:small").standard_normal(shape, dtype=np.float32)
        return torch.from_numpy(np.float32(0.003) * noise)
    value = generator(key).random(shape, dtype=np.float32)
    if plain:
        pass
    elif law.startswith("symmetrised"):
        value = (value + value.T) / 2
    elif law.startswith("upper-triangular"):
        value = np.triu(value)
    elif law.startswith("lower-triangular"):
        value = np.tril(value)
    elif law.startswith("s * uniform"):
        value = scale * value
    elif law.startswith("softmax"):
        exact = (scale * value if "s * uniform" in law else value).astype(np.float64)
        exact = np.exp(exact - exact.max(-1, keepdims=True))
        value = (exact / exact.sum(-1, keepdims=True)).astype(np.float32)
    else:
        raise AssertionError(f"unknown distribution {law!r}")
    return torch.from_numpy(np.ascontiguousarray(value))


def problems(task_id, variant, mode):
    """Runs one case; says in words where the output differs from the recorded one."""
    fingerprint = record(task_id)["fingerprint"]
    expected = fingerprint["cases"][variant]
    found = []
    for one in ("train", "eval") if mode == "train_and_eval" else (mode,):
        model = build(task_id)
        fill(task_id, model)
        model.train(one == "train")
        args = inputs(task_id, variant)
        torch.manual_seed(fingerprint["seed"])
        with torch.no_grad():
            output = model(*args)
        found += [f"{one}: {text}" for text in _compare(output, expected[mode])]
        if one == "train" and "running_after_train_forward" in expected:
            found += _compare_running(model, expected["running_after_train_forward"])
    return found


def _compare(output, expected):
    shape, dtype = list(output.shape), str(output.dtype).removeprefix("torch.")
    if shape != expected["shape"] or dtype != expected["dtype"]:
        return [f"expected {expected['dtype']} {expected['shape']}, got {dtype} {shape}"]
    flat = output.numpy().ravel().astype(np.float64)
    n = flat.size
    if not np.isfinite(flat).all():
        return ["expected finite values, got NaN or infinity"]
    rms = expected["l2"] / math.sqrt(n)
    tol = 1e-3 * expected["std"] + 2e-5 * rms + 1e-9
    extreme = tol + 1e-4 * max(abs(expected["min"]), abs(expected["max"]))
    weights = np.random.default_rng(12345).standard_normal(n)
    samples = flat[[k * (n - 1) // 15 for k in range(16)]]
    checks = [
        ("mean", flat.mean(), expected["mean"], tol),
        ("std", flat.std(), expected["std"], tol),
        ("rms", math.sqrt((flat**2).sum() / n), rms, tol),
        ("min", flat.min(), expected["min"], extreme),
        ("max", flat.max(), expected["max"], extreme),
        ("proj", (flat * weights).sum() / math.sqrt(n), expected["proj"], 3 * tol),
    ]
    checks += [
        (f"sample {k}", got, want, tol + 1e-4 * abs(want))
        for k, (got, want) in enumerate(zip(samples, expected["samples"], strict=True))
    ]
    return [
        f"{name}: expected {want:.6g}, got {got:.6g} (tolerance {allowed:.2g})"
        for name, got, want, allowed in checks
        if not abs(got - want) <= allowed
    ]


def _compare_running(model, expected):
    found = []
    for key, name in (("mean_sum", "running_mean"), ("var_sum", "running_var")):
        got = sum(
            value.double().sum().item()
            for entry, value in model.state_dict().items()
            if entry.endswith(name)
        )
        if not abs(got - expected[key]) <= 1e-4 * max(1.0, abs(expected[key])):
            found.append(f"sum of {name}: expected {expected[key]:.6g}, got {got:.6g}")
    return found


def layout_problems(task_id):
    """Where names, shapes and order differ from the record, at full size, nothing allocated."""
    want = record(task_id)
    task = tasks.get(task_id)
    module = task.module("full")
    found = []

    def expect(what, expected, got):
        if expected != got:
            found.append(f"{what}: expected {expected}, got {got}")

    expect("name", want["name"], task.name)
    parameters = list(inspect.signature(module.Model.__init__).parameters.values())[1:]
    if module.Model.__init__ is torch.nn.Module.__init__:
        parameters = []
    recorded = want["init_args"] + want["init_args_left_at_default"]
    expect("constructor arguments", [a["name"] for a in recorded], [p.name for p in parameters])
    defaults = {
        a["name"]: tuple(a["value"]) if isinstance(a["value"], list) else a["value"]
        for a in want["init_args_left_at_default"]
    }
    for parameter in parameters:
        if parameter.name in defaults:
            default = parameter.default
            if isinstance(default, list):  # a tuple is the better default
                default = tuple(default)
            elif isinstance(default, type):
                default = default.__name__
            expect(f"default of {parameter.name}", defaults[parameter.name], default)
    init_inputs = module.get_init_inputs()
    expect("get_init_inputs()", _values(want["init_args"]), init_inputs)
    expect("forward arguments", want["forward_args"], list(task.file.forward_args))
    with fake_tensors(), torch.no_grad():
        args = module.get_inputs()
        expect(
            "inputs",
            [(i["shape"], i["dtype"]) for i in want["inputs"]],
            [_shape_and_dtype(value) for value in args],
        )
        model = module.Model(*init_inputs)
        entries = dict(model.named_parameters(remove_duplicate=False))
        expect(
            "state",
            [tuple(entry) for entry in want["state"]],
            [
                (
                    key,
                    list(value.shape),
                    str(value.dtype).removeprefix("torch."),
                    "parameter" if key in entries else "buffer",
                )
                for key, value in model.state_dict().items()
            ],
        )
    return found


def _shape_and_dtype(value):
    if isinstance(value, torch.Tensor):
        return list(value.shape), str(value.dtype).removeprefix("torch.")
    return None, type(value).__name__


def fact_problems(task_id):
    """Where the facts derived from the task at full size differ from the record."""
    want = record(task_id)
    facts = tasks.get(task_id).facts("full")
    found = []
    for name, expected in (
        ("flops", want["flops"] + _ATTENTION_FLOPS.get(task_id, 0)),
        ("min_bytes", want["min_bytes"]),
    ):
        if getattr(facts, name) != expected:
            found.append(f"{name}: expected {expected}, got {getattr(facts, name)}")
    shapes = [(o["shape"], o["dtype"]) for o in want["outputs"]]
    got = [(list(shape), dtype) for shape, dtype in facts.outputs]
    if shapes != got:
        found.append(f"outputs: expected {shapes}, got {got}")
    return found


def initialisation_problems(task_id):
    """Whether a seeded construction draws the recorded numbers."""
    expected = record(task_id)["fingerprint"].get("default_init_checksum")
    if expected is None:
        return []
    state = build(task_id, seed=0).state_dict()
    floats = [value.double() for value in state.values() if value.is_floating_point()]
    got = {
        "sum": sum(value.sum().item() for value in floats),
        "abs_sum": sum(value.abs().sum().item() for value in floats),
    }
    return [
        f"seeded initialisation, {key}: expected {expected[key]:.9g}, got {got[key]:.9g}"
        for key in expected
        if not abs(got[key] - expected[key]) <= 1e-7 * max(1.0, abs(expected["abs_sum"]))
    ]


def main(arguments):
    torch.set_num_threads(1)
    wanted = []
    for argument in arguments or ["L1", "L2", "L3"]:
        whole_level = len(argument) == 2
        wanted += tasks.ids(int(argument[1])) if whole_level else [tasks.get(argument).id]
    failed = 0
    for task_id in wanted:
        start = time.perf_counter()
        found = []
        checks = [("layout", layout_problems, ()), ("initialisation", initialisation_problems, ())]
        checks += [(f"{v} {m}", problems, (v, m)) for v, m in cases(task_id)]
        checks += [("facts", fact_problems, ())]
        for name, check, args in checks:
            try:
                found += [f"{name}: {text}" for text in check(task_id, *args)]
            except Exception as error:
                found.append(f"{name}: {type(error).__name__}: {error}")
        failed += bool(found)
        seconds = time.perf_counter() - start
        print(f"{task_id:6} {'FAIL' if found else 'ok':4} {seconds:6.1f} s", flush=True)
        for text in found:
            print(f"         {text[:600]}", flush=True)
    print(f"{len(wanted) - failed} of {len(wanted)} pass")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
