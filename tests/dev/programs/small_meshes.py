"""Programs over four described devices that run in milliseconds, for plants.py: a block's training step by data and model, a stencil."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh

from .common import emit, f32, i32
from .meshes import kept, on

FOUR = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ('data', 'model'))


def block(p, x, ids):
    e = p['emb'][ids] + x
    q, k, v = (kept(FOUR, e @ w, 'data', None, 'model') for w in (p['q'], p['k'], p['v']))
    b, t, d = q.shape
    q, k, v = (a.reshape(b, t, 4, d // 4) for a in (q, k, v))
    a = jnp.einsum('bthd,bshd->bhts', q, k) / 2.
    a = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((t, t), bool)), a, -1e9), -1)
    h = e + kept(FOUR, jnp.einsum('bhts,bshd->bthd', a, v).reshape(b, t, d) @ p['o'], 'data', None, None)
    m = h.mean(-1, keepdims=True)
    return (h - m) * lax.rsqrt(((h - m) ** 2).mean(-1, keepdims=True) + 1e-5)


def step(p, x, ids):
    def loss(p):
        return jnp.mean(block(p, x, ids) ** 2) + jnp.argmax(x, -1).sum().astype(f32) * 1e-3
    return jax.tree.map(lambda a, g: a - .1 * g, p, jax.grad(loss)(p))


def stencil(u, w):
    def go(_, u):
        p = jnp.pad(u, ((1, 1), (1, 1)))
        n = (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]) * .25
        return kept(FOUR, jnp.where(w > 0, n, u), 'data', 'model')
    u = lax.fori_loop(0, 3, go, u)
    t, i = lax.top_k(u.T, 3)
    return u, jnp.cumsum(u, 0).sum(1), t, i, jnp.sort(u, 0)


WEIGHTS = {'emb': on(FOUR, (32, 16), f32, 'model', None), 'o': on(FOUR, (16, 16), f32, 'model', None),
           **{k: on(FOUR, (16, 16), f32, None, 'model') for k in 'qkv'}}
emit('small_mesh_block', step, WEIGHTS, on(FOUR, (4, 8, 16), f32, 'data', None, None), on(FOUR, (4, 8), i32, 'data', None), platform='cuda')
emit('small_mesh_stencil', stencil, on(FOUR, (16, 16), f32, 'data', 'model'), on(FOUR, (16, 16), f32, 'data', 'model'), platform='cuda')
