#!/usr/bin/env python3
"""Writes testdata/eval/lapack.jsonl: jax's matrix functions, lowered for the CPU (LAPACK) and for CUDA (cuSOLVER), with
what XLA's CPU backend gives for them. tests/dev/oracle/lapack_cases.py OUT.jsonl (with the oracle's interpreter). The format is
op_cases.py's; "op" is the function, and its target's library behind a slash."""
import json
import os
import re
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import numpy as np
from jax.scipy import linalg as scipy_linalg
from jax._src.lax import linalg

jax.config.update("jax_enable_x64", True)
TYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}


def qr_pivoted(a):
    return scipy_linalg.qr(a, pivoting=True)


# name -> (function, shapes of its operands)
FUNCTIONS = {
    "cholesky": (lambda a: linalg.cholesky(a, symmetrize_input=False), [(2, 4, 4)]),
    "lu": (linalg.lu, [(2, 5, 3)]),
    "lu wide": (linalg.lu, [(3, 5)]),
    "qr": (linalg.geqrf, [(2, 5, 3)]),
    "qr pivoted": (qr_pivoted, [(5, 3)]),
    "householder_product": (linalg.householder_product, [(5, 3), (3,)]),
    "ormqr left": (lambda a, t, c: linalg.ormqr(a, t, c, left=True, transpose=True), [(5, 3), (3,), (5, 2)]),
    "ormqr right": (lambda a, t, c: linalg.ormqr(a, t, c, left=False, transpose=False), [(5, 3), (3,), (2, 5)]),
    "svd": (lambda a: linalg.svd(a, full_matrices=False), [(2, 5, 3)]),
    "svd full": (lambda a: linalg.svd(a, full_matrices=True), [(3, 5)]),
    "svd values": (lambda a: linalg.svd(a, compute_uv=False), [(3, 5)]),
    "svd by qr": (lambda a: linalg.svd(a, full_matrices=False, algorithm=linalg.SvdAlgorithm.QR), [(5, 3)]),
    "svd by qr wide": (lambda a: linalg.svd(a, full_matrices=False, algorithm=linalg.SvdAlgorithm.QR), [(3, 5)]),
    "eigh": (lambda a: linalg.eigh(a, symmetrize_input=False), [(2, 4, 4)]),
    "eigh upper": (lambda a: linalg.eigh(a, lower=False, symmetrize_input=False), [(4, 4)]),
    "eig": (linalg.eig, [(4, 4)]),
    "eig right": (lambda a: linalg.eig(a, compute_left_eigenvectors=False), [(2, 4, 4)]),
    "schur": (linalg.schur, [(4, 4)]),
    "schur values": (lambda a: linalg.schur(a, compute_schur_vectors=False), [(4, 4)]),
    "hessenberg": (linalg.hessenberg, [(4, 4)]),
    "tridiagonal": (lambda a: linalg.tridiagonal(a, lower=True), [(4, 4)]),
    "tridiagonal upper": (lambda a: linalg.tridiagonal(a, lower=False), [(2, 4, 4)]),
    "triangular_solve": (lambda a, b: linalg.triangular_solve(a, b, left_side=True, lower=True), [(2, 4, 4), (2, 4, 2)]),
    "triangular_solve right": (lambda a, b: linalg.triangular_solve(a, b, lower=False, transpose_a=True, conjugate_a=True, unit_diagonal=True), [(4, 4), (2, 4)]),
    "tridiagonal_solve": (linalg.tridiagonal_solve, [(2, 4), (2, 4), (2, 4), (2, 4, 2)]),
}


def operands(shapes, dtype, seed):
    """Matrices near a multiple of the identity: of full rank, positive definite, with distinct eigenvalues."""
    random = np.random.default_rng(seed)
    out = []
    for shape in shapes:
        a = random.normal(size=shape)
        if np.issubdtype(dtype, np.complexfloating):
            a = a + 1j * random.normal(size=shape)
        if len(shape) > 1 and shape[-1] == shape[-2]:
            a = 0.5 * a + np.diag(2.0 + 2 * np.arange(shape[-1]))
            a = a - 1j * np.diag(np.diag(a.reshape(-1, *shape[-2:])[0]).imag) if np.iscomplexobj(a) and len(shape) == 2 else a
        out.append(a.astype(dtype))
    return out


def text_of(function, shapes, dtype, platform):
    lowered = jax.jit(function).trace(*[jax.ShapeDtypeStruct(s, dtype) for s in shapes]).lower(lowering_platforms=(platform,))
    text = lowered.compiler_ir("hlo").as_hlo_text()
    text = re.sub(r", metadata=\{[^}]*\}", "", text)
    text = re.sub(r', frontend_attributes=\{num_batch_dims="\d+",xla.sdy.sharding_rule="[^"]*"\}', "", text)
    return re.sub(r"\n(FileNames|FunctionNames|FileLocations|StackFrames)\n(.+\n)*", "", text)


def main(out):
    cases = []
    for seed, (name, (function, shapes)) in enumerate(FUNCTIONS.items()):
        for type_name, dtype in TYPES.items():
            inputs = operands(shapes, dtype, seed)
            results = jax.tree.leaves(jax.jit(function)(*inputs))
            for platform in ("cpu", "cuda"):
                try:
                    text = text_of(function, shapes, dtype, platform)
                except NotImplementedError:
                    continue  # no lowering for that platform
                if "custom_call_target" not in text:
                    continue
                targets = sorted(set(re.findall(r'custom_call_target="([^"]*)"', text)))
                cases.append({"op": f"{name}/{'+'.join(targets)}", "type": type_name, "text": text, "inputs": [np.ascontiguousarray(a).tobytes().hex() for a in inputs], "outputs": [np.ascontiguousarray(a).tobytes().hex() for a in results]})
    with open(out, "w") as f:
        for case in cases:
            f.write(json.dumps(case) + "\n")
    print(len(cases), "cases")


if __name__ == "__main__":
    main(sys.argv[1])
