"""Programs over eight described devices: by data, by weights, by tensors, by stages, by experts, by halves of a sequence, by halos."""
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from .common import S, bf16, conv, emit, f32, i32, norm

ALL = Mesh(np.array(jax.devices()[:8]), ('d',))
GRID = Mesh(np.array(jax.devices()[:8]).reshape(2, 4), ('d', 'm'))


def on(mesh, shape, t, *spec):
    return S(shape, t, sharding=NamedSharding(mesh, P(*spec)))


def kept(mesh, x, *spec):
    return lax.with_sharding_constraint(x, NamedSharding(mesh, P(*spec)))


# By data alone: gradients are summed over devices; batch norm's statistics, too.
def cnn_loss(p, x, y):
    h = x
    for n in range(2):
        h = conv(h, p[f'c{n}'], 2)
        h = jax.nn.relu((h - h.mean((0, 1, 2))) * lax.rsqrt(h.var((0, 1, 2)) + 1e-5) * p[f'g{n}'])
    logp = jax.nn.log_softmax(h.mean((1, 2)) @ p['w'])
    return -jnp.mean(jnp.take_along_axis(logp, y[:, None], 1))


def sgd(loss):
    def step(p, *data):
        l, g = jax.value_and_grad(loss)(p, *data)
        return jax.tree.map(lambda p, g: (p - 0.1 * g).astype(p.dtype), p, g), l
    return step


one = functools.partial(on, ALL)
emit('mesh_data_parallel_cnn', sgd(cnn_loss), {'c0': one((3, 3, 3, 64), f32), 'g0': one((64,), f32), 'c1': one((3, 3, 64, 128), f32), 'g1': one((128,), f32), 'w': one((128, 100), f32)},
     one((128, 32, 32, 3), f32, 'd'), one((128,), i32, 'd'), platform='cuda')


# By weights (gathered for each layer of a scan, gradients scattered), and by tensors with the sequence split between.
def layer(mesh, x, w, heads, inner, between):
    B, T, D = x.shape
    h = norm(x, w['n1'])
    q, k, v = [kept(mesh, (h @ w[n]).reshape(B, T, heads, -1), *inner) for n in 'qkv']
    s = jnp.einsum('bqhd,bkhd->bhqk', q, k).astype(f32) / 8
    s = jnp.where(jnp.tril(jnp.ones((T, T), bool)), s, -1e30)
    a = jnp.einsum('bhqk,bkhd->bqhd', jax.nn.softmax(s).astype(x.dtype), v).reshape(B, T, D)
    x = kept(mesh, x + a @ w['o'], *between)
    h = norm(x, w['n2'])
    return kept(mesh, x + (jax.nn.silu(h @ w['w1']) * (h @ w['w3'])) @ w['w2'], *between)


def fsdp_loss(p, ids):
    x = kept(ALL, p['e'][ids].astype(bf16), 'd')
    body = jax.checkpoint(lambda x, w: (layer(ALL, x, jax.tree.map(lambda a: a.astype(bf16), w), 8, ('d',), ('d',)), None))
    x, _ = lax.scan(body, x, p['layers'])
    logits = (x[:, :-1] @ p['e'].T.astype(bf16)).astype(f32)
    return jnp.mean(jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, ids[:, 1:, None], -1)[..., 0])


SIZES = {'q': (512, 512), 'k': (512, 512), 'v': (512, 512), 'o': (512, 512), 'w1': (512, 2048), 'w3': (512, 2048), 'w2': (2048, 512), 'n1': (512,), 'n2': (512,)}
emit('mesh_fsdp_scan', sgd(fsdp_loss), {'e': one((8192, 512), f32, 'd'), 'layers': {k: one((4, *s), f32, None, 'd') for k, s in SIZES.items()}}, one((16, 128), i32, 'd'), platform='cuda')

two = functools.partial(on, GRID)
COLUMNS, ROWS = (None, 'm'), ('m', None)
TENSOR = {k: two(SIZES[k], bf16, *(ROWS if k in ('o', 'w2') else COLUMNS if len(SIZES[k]) > 1 else ())) for k in SIZES}


def tensor_loss(p, x, y):
    for n in range(2):
        x = layer(GRID, x, p[n], 8, ('d', None, 'm'), ('d', 'm'))
    return jnp.mean((x.astype(f32) - y) ** 2)


emit('mesh_tensor_sequence_train', sgd(tensor_loss), [TENSOR, TENSOR], two((8, 256, 512), bf16, 'd', 'm'), two((8, 256, 512), f32, 'd', 'm'), platform='cuda')
emit('mesh_tensor_infer', lambda p, x: layer(GRID, layer(GRID, x, p[0], 8, ('d', None, 'm'), ('d',)), p[1], 8, ('d', None, 'm'), ('d',)), [TENSOR, TENSOR], two((8, 256, 512), bf16, 'd'), platform='cuda')


# A vocabulary in pieces: a lookup and a loss of which no device has all columns.
def vocabulary_loss(p, ids):
    x = p['e'][ids[:, :-1]]
    logits = kept(GRID, jax.nn.gelu(x @ p['w']) @ p['e'].T, 'd', None, 'm')
    hot = jax.nn.one_hot(ids[:, 1:], logits.shape[-1])
    return jnp.mean(jax.nn.logsumexp(logits, -1) - jnp.sum(logits * hot, -1))


emit('mesh_vocabulary_pieces', sgd(vocabulary_loss), {'e': two((16384, 256), f32, 'm'), 'w': two((256, 256), f32)}, two((16, 65), i32, 'd'), platform='cuda')


# By hand (shard_map): stages in a pipeline, rings of keys, experts by all-to-all, updates by reduce-scatter, halos of a stencil.
def mapped(mesh, ins, outs):
    return functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=outs, check_vma=False)


@mapped(ALL, (P('d'), P('d'), P()), P())
def pipeline(w, b, x):
    stage, last = lax.axis_index('d'), 7

    def tick(c, t):
        state, out = c
        here = jnp.where(stage == 0, x[jnp.minimum(t, x.shape[0] - 1)], state)
        y = here + jax.nn.gelu(here @ w[0] + b[0])
        at = jnp.clip(t - last, 0, x.shape[0] - 1)
        out = jnp.where((stage == last) & (t >= last), lax.dynamic_update_index_in_dim(out, y, at, 0), out)
        return (lax.ppermute(y, 'd', [(i, (i + 1) % 8) for i in range(8)]), out), None
    (_, out), _ = lax.scan(tick, (jnp.zeros_like(x[0]), jnp.zeros_like(x)), jnp.arange(x.shape[0] + last))
    return lax.psum(jnp.where(stage == last, out, 0), 'd')


PIPE = one((8, 512, 512), f32, 'd'), one((8, 512), f32, 'd'), one((16, 32, 512), f32)
emit('mesh_pipeline', pipeline, *PIPE, platform='cuda')
emit('mesh_pipeline_train', lambda w, b, x: jax.value_and_grad(lambda w: jnp.mean(pipeline(w, b, x) ** 2))(w), *PIPE, platform='cuda')


@mapped(ALL, (P(None, None, 'd'),) * 3, P(None, None, 'd'))
def ring(q, k, v):
    def one_step(c, _):
        k, v, m, l, o = c
        s = jnp.einsum('bhqd,bhkd->bhqk', q, k).astype(f32) * 0.125
        m2 = jnp.maximum(m, s.max(-1))
        p, f = jnp.exp(s - m2[..., None]), jnp.exp(m - m2)
        o = o * f[..., None] + jnp.einsum('bhqk,bhkd->bhqd', p.astype(v.dtype), v).astype(f32)
        turn = lambda x: lax.ppermute(x, 'd', [(i, (i + 1) % 8) for i in range(8)])
        return (turn(k), turn(v), m2, l * f + p.sum(-1), o), None
    zero = jnp.zeros(q.shape[:3], f32)
    (_, _, _, l, o), _ = lax.scan(one_step, (k, v, zero - 1e30, zero, jnp.zeros(q.shape, f32)), None, length=8)
    return (o / l[..., None]).astype(q.dtype)


emit('mesh_ring_attention', ring, *[one((2, 8, 2048, 64), bf16, None, None, 'd')] * 3, platform='cuda')


@mapped(ALL, (P('d'), P(), P('d'), P('d')), P('d'))
def experts(x, r, w1, w2):
    at = jnp.argmax(x @ r, -1)
    gate = jnp.max(jax.nn.softmax((x @ r).astype(f32)), -1)
    hot = jax.nn.one_hot(at, 8, dtype=i32)
    slot = jnp.sum(jnp.cumsum(hot, 0) * hot, -1) - 1
    room = jnp.zeros((8, 32, x.shape[1]), x.dtype).at[at, slot].set(x, mode='drop')
    room = lax.all_to_all(room, 'd', 0, 1, tiled=True)
    y = jax.nn.gelu(room[0] @ w1[0]) @ w2[0]
    y = lax.all_to_all(y.reshape(8, 32, -1), 'd', 0, 0, tiled=True)
    return y.at[at, slot].get(mode='fill', fill_value=0) * gate[:, None].astype(x.dtype)


EXPERTS = one((1024, 512), bf16, 'd'), one((512, 8), bf16), one((8, 512, 1024), bf16, 'd'), one((8, 1024, 512), bf16, 'd')
emit('mesh_experts_all_to_all', experts, *EXPERTS, platform='cuda')
emit('mesh_experts_train', lambda x, r, a, b: jax.grad(lambda a, b: jnp.sum(experts(x, r, a, b).astype(f32) ** 2), (0, 1))(a, b), *EXPERTS, platform='cuda')


@mapped(ALL, (P('d'), P('d'), P('d'), P('d')), (P('d'), P('d'), P()))
def zero_step(w, m, x, y):
    full = lax.all_gather(w, 'd', tiled=True)
    loss = lambda w: jnp.mean((jax.nn.relu(x @ w) @ w.T - y) ** 2)
    l, g = jax.value_and_grad(loss)(full)
    g = lax.psum_scatter(g, 'd', scatter_dimension=0, tiled=True) / 8
    n = jnp.sqrt(lax.psum(jnp.sum(g * g), 'd'))
    m = 0.9 * m + g * jnp.minimum(1.0, 1.0 / n)
    return w - 0.01 * m, m, lax.pmean(l, 'd')


emit('mesh_zero_by_hand', zero_step, one((1024, 2048), f32, 'd'), one((1024, 2048), f32, 'd'), one((256, 1024), f32, 'd'), one((256, 1024), f32, 'd'), platform='cuda')


@mapped(GRID, (P('d', 'm'),), P('d', 'm'))
def halo(u):
    def edges(u, axis, size, dim):
        if size == 1:
            return u
        first, last = lax.slice_in_dim(u, 0, 1, axis=dim), lax.slice_in_dim(u, u.shape[dim] - 1, u.shape[dim], axis=dim)
        down = lax.ppermute(last, axis, [(i, i + 1) for i in range(size - 1)])
        up = lax.ppermute(first, axis, [(i + 1, i) for i in range(size - 1)])
        return jnp.concatenate([down, u, up], dim)

    def go(s):
        u, n, d = s
        e = edges(edges(u, 'd', 2, 0), 'm', 4, 1)
        v = 0.25 * (e[2:, 1:-1] + e[:-2, 1:-1] + e[1:-1, 2:] + e[1:-1, :-2])
        return v, n + 1, lax.pmax(jnp.max(jnp.abs(v - u)), ('d', 'm'))
    return lax.while_loop(lambda s: (s[1] < 200) & (s[2] > 1e-5), go, (u, 0, jnp.float32(1)))[0]


emit('mesh_halo_jacobi', halo, two((512, 512), f32, 'd', 'm'), platform='cuda')
emit('mesh_spatial_conv', lambda x, w: kept(ALL, conv(jax.nn.relu(conv(x, w)), w), None, 'd'), one((2, 256, 64, 16), f32, None, 'd'), one((5, 5, 16, 16), f32), platform='cuda')
emit('mesh_sort_topk_gather', lambda x, t, i: (lax.top_k(x, 16), jnp.sort(x[:, :128], 0), kept(ALL, t[i], 'd')), one((64, 4096), f32, 'd'), one((10000, 64), f32, None, 'd'), one((512,), i32, 'd'), platform='cuda')
