"""Perceptrons, graphs, mixtures of experts, embeddings."""
import jax
import jax.numpy as jnp
from jax import lax

from .common import S, emit, f32, i32, tree


def adam(p, g, m, v, t, lr=0.001):
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
    p = jax.tree.map(lambda p, m, v: p - lr * (m / (1 - 0.9 ** t)) / (jnp.sqrt(v / (1 - 0.999 ** t)) + 1e-08), p, m, v)
    return (p, m, v)


def mlp(p, x):
    for i, (w, b) in enumerate(p):
        x = x @ w + b
        if i < len(p) - 1:
            x = jax.nn.gelu(x)
    return x


def mlp_step(p, m, v, t, x, y):

    def loss(p):
        l = mlp(p, x)
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(l) * jax.nn.one_hot(y, 10), -1))
    l, g = jax.value_and_grad(loss)(p)
    return adam(p, g, m, v, t) + (l,)
P = [(S((784, 512), f32), S((512,), f32)), (S((512, 256), f32), S((256,), f32)), (S((256, 10), f32), S((10,), f32))]

emit('mlp_train', mlp_step, P, P, P, S((), f32), S((128, 784), f32), S((128,), i32))


def gnn(p, x, src, dst):
    for w in p:
        m = jax.nn.relu(x[src] @ w)
        a = jax.ops.segment_sum(m, dst, x.shape[0])
        n = jax.ops.segment_sum(jnp.ones_like(src, f32), dst, x.shape[0])
        x = a / jnp.maximum(n, 1)[:, None] + x @ w
    return x

emit('gnn_train', lambda p, x, s, d, y: jax.value_and_grad(lambda p: jnp.mean((gnn(p, x, s, d) - y) ** 2))(p), [S((64, 64), f32)] * 3, S((2000, 64), f32), S((10000,), i32), S((10000,), i32), S((2000, 64), f32))


def moe(p, x):
    lg = x @ p['r']
    pr = jax.nn.softmax(lg)
    g, i = lax.top_k(pr, 2)
    oh = jax.nn.one_hot(i, 8)
    cap = 64
    pos = jnp.cumsum(oh.reshape(-1, 8), 0).reshape(oh.shape) * oh - 1
    keep = (pos < cap) & (pos >= 0)
    disp = jnp.sum(jax.nn.one_hot(jnp.where(keep, pos, -1).astype(i32), cap) * oh[..., None], 1)
    comb = disp * jnp.sum(g[..., None] * oh, 1)[..., None]
    xe = jnp.einsum('tec,td->ecd', disp, x)
    h = jax.nn.gelu(jnp.einsum('ecd,edf->ecf', xe, p['w1']))
    y = jnp.einsum('ecf,efd->ecd', h, p['w2'])
    return jnp.einsum('tec,ecd->td', comb, y)
emit('moe_train', lambda p, x: jax.value_and_grad(lambda p: jnp.mean(moe(p, x) ** 2))(p), dict(r=S((128, 8), f32), w1=S((8, 128, 256), f32), w2=S((8, 256, 128), f32)), S((256, 128), f32))

emit('embed_train', lambda e, w, i, y: jax.grad(lambda e, w: jnp.mean((e[i].mean(1) @ w - y) ** 2), (0, 1))(e, w), S((50000, 64), f32), S((64, 16), f32), S((256, 20), i32), S((256, 16), f32))


def gat(p, x, s, r):
    h = (x @ p['w']).reshape(-1, 4, 16)
    e = jax.nn.leaky_relu((h * p['l']).sum(-1)[s] + (h * p['r']).sum(-1)[r], 0.2)
    e = jnp.exp(e - jax.ops.segment_max(e, r, 1000)[r])
    a = e / jax.ops.segment_sum(e, r, 1000)[r]
    return jax.nn.elu(jax.ops.segment_sum(a[..., None] * h[s], r, 1000).reshape(1000, 64))


emit('gat_train', lambda p, x, s, r: jax.value_and_grad(lambda p: jnp.mean(gat(p, x, s, r) ** 2))(p),
     tree({'w': ((32, 64), f32), 'l': ((4, 16), f32), 'r': ((4, 16), f32)}), S((1000, 32), f32), S((5000,), i32), S((5000,), i32))
