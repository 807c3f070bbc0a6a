#!/usr/bin/env python3
"""Seconds that jax's XLA takes for one HLO module on the card (best of 20, inputs and results there): time_jax.py FILE
[cpu|gpu]. Inputs are all ones: times of kernels do not depend on them, loops of known counts neither."""
import re
import sys
import time

import jax
import numpy as np
from jax._src.lib import xla_client
from jaxlib import _jax
from jaxlib.mlir import ir

file, platform = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "gpu"
with open(file) as f:
    text = f.read()
# Fusions of ours are XLA's to make again.
text = re.sub(r"\bfusion\(([^()]*)\), kind=\w+, calls=", r"call(\1), to_apply=", text)
device = jax.devices(platform)[0]
module = xla_client._xla.hlo_module_from_text(text) if hasattr(xla_client._xla, "hlo_module_from_text") else None
if module is None:
    from jaxlib import _hlo
    module = _hlo.hlo_module_from_text(text)
    computation = _hlo.XlaComputation(module.as_serialized_hlo_module_proto())
else:
    computation = xla_client.XlaComputation(module.as_serialized_hlo_module_proto())
shapes = computation.program_shape().parameter_shapes()
mlir = _jax.mlir.xla_computation_to_mlir_module(computation)
executable = device.client.compile_and_load(mlir, _jax.DeviceList((device,)))


def leaves(shape):
    return [leaf for part in shape.tuple_shapes() for leaf in leaves(part)] if shape.is_tuple() else [shape]


buffers = [jax.device_put(np.ones(s.dimensions(), s.numpy_dtype()), device) for whole in shapes for s in leaves(whole)]
best = float("inf")
for _ in range(20):
    start = time.perf_counter()
    jax.block_until_ready(executable.execute_sharded(buffers).disassemble_into_single_device_arrays())
    best = min(best, time.perf_counter() - start)
print(f"{best:.6f}")
