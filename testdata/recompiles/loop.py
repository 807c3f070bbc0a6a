"""A loop that jax compiles for four reasons and more; what it left is in this folder (jaxlib 0.10.2, eight CPU devices):
cache/ by JAX_COMPILATION_CACHE_DIR, dump/ by --xla_dump_to (of each module its first stage), log.txt by JAX_LOG_COMPILES
and JAX_EXPLAIN_CACHE_MISSES."""
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P


@jax.jit
def step(w, x):
    return jnp.tanh(x @ w)


@jax.jit
def scaled(x, s):
    return x * s


@functools.partial(jax.jit, static_argnums=1)
def top(x, k):
    return jnp.sort(x, axis=-1)[:, :k]


def with_target(c):
    t = np.sin(np.arange(16, dtype=np.float32)) * c

    @jax.jit
    def loss(x):
        return ((x - t) ** 2).sum()
    return loss


w = jax.device_put(np.ones((16, 16), np.float32))
for rows in (4, 6, 8):  # the size of a batch
    step(w, np.ones((rows, 16), np.float32))
for s in (2.0, np.float32(2.0)):  # a weak type
    scaled(w, s)
for c in (1, 2, 3):  # a constant that the function closes over
    with_target(c)(w)
for k in (2, 3):  # a static argument
    top(w, k)
mesh = jax.make_mesh((8,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
for spec in (P("d"), P(None, "d")):  # a sharding
    step(w, jax.device_put(np.ones((8, 16), np.float32), NamedSharding(mesh, spec)))
