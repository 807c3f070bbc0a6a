"""What the programs of this folder share: how one is told, layers and an optimizer that several have."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

S = jax.ShapeDtypeStruct
f32, bf16, f16, i32, u32, bool_ = jnp.float32, jnp.bfloat16, jnp.float16, jnp.int32, jnp.uint32, jnp.bool_
PROGRAMS = {}  # by name: a function, its arguments' shapes, whether wide types are allowed, the platform that jax lowers for


def emit(name, fn, *args, x64=False, platform="cpu"):
    """Names a program; models.py lowers it. Sharded arguments say on how many devices it runs."""
    assert name not in PROGRAMS, name
    PROGRAMS[name] = fn, args, x64, platform


def conv(x, w, s=1, groups=1, dil=1):
    return lax.conv_general_dilated(x, w, (s, s), 'SAME', dimension_numbers=('NHWC', 'HWIO', 'NHWC'),
                                    feature_group_count=groups, rhs_dilation=(dil, dil))


def norm(x, g, b=None):
    x32 = x.astype(f32)
    mu = x32.mean(-1, keepdims=True) if b is not None else 0
    y = (x32 - mu) * lax.rsqrt(jnp.mean((x32 - mu) ** 2, -1, keepdims=True) + 1e-6) * g
    return (y if b is None else y + b).astype(x.dtype)


def tree(spec):
    return {k: S(shape, t) for k, (shape, t) in spec.items()}


def adamw(p, g, m, v, t):
    n = jnp.sqrt(sum(jnp.sum(x.astype(f32) ** 2) for x in jax.tree.leaves(g)))
    g = jax.tree.map(lambda x: x.astype(f32) * jnp.minimum(1.0, 1.0 / (n + 1e-6)), g)
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    v = jax.tree.map(lambda v, g: 0.95 * v + 0.05 * g * g, v, g)
    p = jax.tree.map(lambda p, m, v: p - 3e-4 * (m / (1 - 0.9 ** t) / (jnp.sqrt(v / (1 - 0.95 ** t)) + 1e-8) + 0.1 * p), p, m, v)
    return p, m, v, n


def dropout(k, x, rate=0.1):
    return jnp.where(jax.random.bernoulli(k, 1 - rate, x.shape), x / (1 - rate), 0).astype(x.dtype)


def ln(x, g, b):
    mu = x.mean(-1, keepdims=True)
    va = ((x - mu) ** 2).mean(-1, keepdims=True)
    return (x - mu) * lax.rsqrt(va + 1e-05) * g + b


def rope(x, pos):
    half = x.shape[-1] // 2
    w = pos[..., None].astype(f32) * (10000.0 ** (-jnp.arange(half) / half))
    a, b = x[..., :half].astype(f32), x[..., half:].astype(f32)
    s, c = jnp.sin(w)[..., None, :], jnp.cos(w)[..., None, :]
    return jnp.concatenate([a * c - b * s, b * c + a * s], -1).astype(x.dtype)


def attn(x, wq, wk, wv, wo, h, causal=True):
    B, T, D = x.shape
    d = D // h
    q, k, v = [(x @ w).reshape(B, T, h, d) for w in (wq, wk, wv)]
    s = jnp.einsum('bthd,bshd->bhts', q, k) / np.sqrt(d)
    if causal:
        s = jnp.where(jnp.tril(jnp.ones((T, T), bool)), s, -1000000000.0)
    a = jax.nn.softmax(s.astype(f32), -1).astype(x.dtype)
    return jnp.einsum('bhts,bshd->bthd', a, v).reshape(B, T, D) @ wo
