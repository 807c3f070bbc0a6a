// The script that lies beside a reduced or reported module: reduce, triage.
#include "replay/cli/triage/triage.h"

namespace hlo {

std::string jax_script() {
  return R"script(#!/usr/bin/env python3
"""Runs module.hlo on jax's first device, on the inputs in this folder, and prints the outputs. Where expected.npz is
there, what differs from it is printed, too (exit 1). jax and jaxlib 0.6 and later."""
import pathlib
import sys

import jax

jax.config.update("jax_enable_x64", True)
import numpy as np
from jaxlib import xla_client

try:
    from jaxlib import _hlo, _jax
except ImportError:  # one extension held both until 0.8
    _hlo = _jax = xla_client._xla

here = pathlib.Path(__file__).parent
module = _hlo.hlo_module_from_text((here / "module.hlo").read_text())
computation = _hlo.XlaComputation(module.as_serialized_hlo_module_proto())
if hasattr(_jax.mlir, "hlo_to_stablehlo"):
    stablehlo = _jax.mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())
else:
    stablehlo = _jax.mlir.xla_computation_to_mlir_module(computation)
device = jax.devices()[0]
compile_call = getattr(device.client, "compile_and_load", None) or device.client.compile
try:
    executable = compile_call(stablehlo, _jax.DeviceList((device,)), xla_client.CompileOptions())
except TypeError:  # 0.6 takes no list of devices
    executable = compile_call(stablehlo, xla_client.CompileOptions())


def read(name):
    return np.load(here / name, allow_pickle=False) if (here / name).exists() else {}


# numpy has no bfloat16 and no float8: their bits travel as integers.
arrays, leaves = read("inputs.npz"), []
for i, shape in enumerate(computation.program_shape().parameter_shapes()):
    dtype = shape.numpy_dtype()
    value = arrays[f"p{i}"] if f"p{i}" in arrays else np.zeros(shape.dimensions(), dtype)
    leaves.append(jax.device_put(value.view(dtype) if value.dtype != dtype else value, device))
expected, wrong = read("expected.npz"), 0
for k, group in enumerate(executable.execute_sharded(leaves).disassemble_into_single_device_arrays()):
    got = np.asarray(group[0])
    print(got)
    if f"o{k}" not in expected:
        continue
    want = expected[f"o{k}"].view(got.dtype) if expected[f"o{k}"].dtype != got.dtype else expected[f"o{k}"]
    x, y = (a.astype(np.complex128 if got.dtype.kind == "c" else np.float64).ravel() for a in (got, want))
    top = np.max(np.abs(y[np.isfinite(y)]), initial=0)
    for n in np.flatnonzero(~((x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= 1e-3 * top)))[:3]:
        print(f"o{k}{list(map(int, np.unravel_index(n, got.shape)))} is {x[n]:g}, must be {y[n]:g}")
        wrong = 1
sys.exit(wrong)
)script";
}

}  // namespace hlo
