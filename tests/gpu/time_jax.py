#!/usr/bin/env python3
"""Seconds a call that jax's XLA takes for an HLO module on the GPU (best of 20, inputs and results there): time_jax.py FILE

Compiles, prints "ready", waits for a line of standard input, so that nothing is timed while others compile, then prints
the seconds. Inputs are all ones: times of kernels do not depend on them, loops of known counts neither."""
import os
import re
import sys
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # several of these wait at once
import jax
import numpy as np
from jax._src.lib import xla_client
from jaxlib import _jax

device = jax.devices()[0]
if device.platform != "gpu" and "HLO_CUDA_DRIVER" not in os.environ:  # where it is a rehearsal
    sys.exit("jax has no GPU here")


def computation_of(text):
    text = re.sub(r"\bfusion\(([^()]*)\), kind=\w+, calls=", r"call(\1), to_apply=", text)  # fusions of ours are XLA's to make again
    if hasattr(xla_client._xla, "hlo_module_from_text"):
        module = xla_client._xla.hlo_module_from_text(text)
        return xla_client.XlaComputation(module.as_serialized_hlo_module_proto())
    from jaxlib import _hlo
    return _hlo.XlaComputation(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())


def compiled(file):
    with open(file) as f:
        computation = computation_of(f.read())
    mlir = _jax.mlir.xla_computation_to_mlir_module(computation)
    return computation.program_shape().parameter_shapes(), device.client.compile_and_load(mlir, _jax.DeviceList((device,)))


def leaves(shape):
    return [leaf for part in shape.tuple_shapes() for leaf in leaves(part)] if shape.is_tuple() else [shape]


def seconds(shapes, executable):
    buffers = [jax.device_put(np.ones(s.dimensions(), s.numpy_dtype()), device) for whole in shapes for s in leaves(whole)]
    best = float("inf")
    for _ in range(20):
        start = time.perf_counter()
        jax.block_until_ready(executable.execute_sharded(buffers).disassemble_into_single_device_arrays())
        best = min(best, time.perf_counter() - start)
    return best


shapes, executable = compiled(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
print(f"{seconds(shapes, executable):.6f}", flush=True)
