#!/usr/bin/env python3
"""More jax programs as HLO text, larger ones of the kinds that people train and serve: JAX_PYTHON models_more.py OUT_DIR

As models.py: traced and lowered alone; `xla.py compile` makes the dumps that final_all.py takes."""
import os
import pathlib
import sys
os.environ['JAX_PLATFORMS'] = 'cpu'

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

OUT = pathlib.Path(sys.argv[1])
OUT.mkdir(exist_ok=True, parents=True)
S = jax.ShapeDtypeStruct
f32, bf16, f16, i32, u32 = jnp.float32, jnp.bfloat16, jnp.float16, jnp.int32, jnp.uint32


def emit(name, fn, *args):
    try:
        text = jax.jit(fn).lower(*args).compiler_ir('hlo').as_hlo_text(True)
        (OUT / f'{name}.hlo').write_text(text)
        print(name, text.count('\n'))
    except Exception as e:  # a program that this jax cannot lower
        print(name, 'ERR', str(e)[:200])


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


# BERT: masks, dropout by keys, tied embeddings, half precision inside, full precision weights.
def dropout(k, x, rate=0.1):
    return jnp.where(jax.random.bernoulli(k, 1 - rate, x.shape), x / (1 - rate), 0).astype(x.dtype)


def bert_layer(p, x, mask, key):
    B, T, D = x.shape
    q, k, v = [(x @ p[n].astype(x.dtype)).reshape(B, T, 8, D // 8) for n in 'qkv']
    s = jnp.einsum('bqhd,bkhd->bhqk', q, k).astype(f32) / 8 + mask
    a = dropout(key, jax.nn.softmax(s).astype(x.dtype))
    y = jnp.einsum('bhqk,bkhd->bqhd', a, v).reshape(B, T, D) @ p['o'].astype(x.dtype)
    x = norm(x + y, p['g1'], p['b1'])
    h = jax.nn.gelu(x @ p['w1'].astype(x.dtype) + p['c1'].astype(x.dtype), approximate=False)
    return norm(x + h @ p['w2'].astype(x.dtype), p['g2'], p['b2'])


D = 256
LAYER = {**{n: ((D, D), f32) for n in 'qkvo'}, 'g1': ((D,), f32), 'b1': ((D,), f32), 'g2': ((D,), f32), 'b2': ((D,), f32),
         'w1': ((D, 4 * D), f32), 'c1': ((4 * D,), f32), 'w2': ((4 * D, D), f32)}


def bert_loss(p, ids, pad, labels, key, half):
    x = p['e'][ids] + p['pos'][None, :ids.shape[1]]
    x = x.astype(half)
    mask = jnp.where(pad[:, None, None, :], 0.0, -1e9)
    for n in range(2):
        x = bert_layer(p[f'l{n}'], x, mask, jax.random.fold_in(jax.random.wrap_key_data(key), n))
    logits = (x.astype(f32) @ p['e'].T)
    ll = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1)[..., 0]
    return -jnp.sum(jnp.where(pad, ll, 0)) / jnp.maximum(1, jnp.sum(pad))


BERT = {'e': S((4096, D), f32), 'pos': S((512, D), f32), 'l0': tree(LAYER), 'l1': tree(LAYER)}
for half, n in ((bf16, 'bf16'), (f32, 'f32')):
    def bert_step(p, m, v, t, ids, pad, labels, key, half=half):
        l, g = jax.value_and_grad(bert_loss)(p, ids, pad, labels, key, half)
        return (*adamw(p, g, m, v, t), l)
    emit(f'bert_train_{n}', bert_step, BERT, BERT, BERT, S((), f32), S((8, 128), i32), S((8, 128), bool), S((8, 128), i32), S((2,), u32))


# A decoder of layers in a scan, grouped heads, rotary positions, cache updated in place.
def rope(x, pos):
    half = x.shape[-1] // 2
    w = pos[..., None].astype(f32) * (10000.0 ** (-jnp.arange(half) / half))
    a, b = x[..., :half].astype(f32), x[..., half:].astype(f32)
    s, c = jnp.sin(w)[..., None, :], jnp.cos(w)[..., None, :]
    return jnp.concatenate([a * c - b * s, b * c + a * s], -1).astype(x.dtype)


def decode(p, cache_k, cache_v, tok, pos):
    x = p['e'][tok].astype(bf16)

    def layer(x, w):
        w, ck, cv = w
        h = norm(x, w['n1'])
        q = rope((h @ w['q']).reshape(-1, 1, 8, 64), pos[:, None])
        k = rope((h @ w['k']).reshape(-1, 1, 2, 64), pos[:, None])
        v = (h @ w['v']).reshape(-1, 1, 2, 64)
        put = jax.vmap(lambda c, n, i: lax.dynamic_update_slice(c, n, (i, 0, 0)))
        ck, cv = put(ck, k, pos), put(cv, v, pos)
        s = jnp.einsum('bghd,btgd->bght', q.reshape(-1, 2, 4, 64), ck).astype(f32) / 8
        s = jnp.where(jnp.arange(ck.shape[1])[None, None, None] <= pos[:, None, None, None], s, -1e30)
        a = jnp.einsum('bght,btgd->bghd', jax.nn.softmax(s).astype(bf16), cv).reshape(-1, 512)
        x = x + a @ w['o']
        h = norm(x, w['n2'])
        return x + (jax.nn.silu(h @ w['w1']) * (h @ w['w3'])) @ w['w2'], (ck, cv)
    x, (ck, cv) = lax.scan(layer, x, (p['layers'], cache_k, cache_v))
    logits = norm(x, p['n']).astype(f32) @ p['e'].T
    return jnp.argmax(logits, -1), ck, cv


LLAMA = {'q': ((512, 512), bf16), 'k': ((512, 128), bf16), 'v': ((512, 128), bf16), 'o': ((512, 512), bf16), 'n1': ((512,), f32),
         'n2': ((512,), f32), 'w1': ((512, 1536), bf16), 'w3': ((512, 1536), bf16), 'w2': ((1536, 512), bf16)}
STACK = {'layers': tree({k: ((4, *s), t) for k, (s, t) in LLAMA.items()}), 'e': S((2048, 512), f32), 'n': S((512,), f32)}
CACHE = S((4, 8, 256, 2, 64), bf16)
emit('decode_scan', decode, STACK, CACHE, CACHE, S((8,), i32), S((8,), i32))
emit('generate', lambda p, ck, cv, t, pos: lax.fori_loop(0, 16, lambda i, s: (lambda r: (r[1], r[2], r[0].astype(i32), s[3] + 1))(decode(p, s[0], s[1], s[2], s[3])), (ck, cv, t, pos)),
     STACK, CACHE, CACHE, S((8,), i32), S((8,), i32))


def prefill_loss(p, ids):
    x = p['e'][ids].astype(bf16)
    B, T, _ = x.shape

    @jax.checkpoint
    def layer(x, w):
        h = norm(x, w['n1'])
        pos = jnp.arange(T)[None]
        q, k, v = rope((h @ w['q']).reshape(B, T, 8, 64), pos), rope((h @ w['k']).reshape(B, T, 2, 64), pos), (h @ w['v']).reshape(B, T, 2, 64)
        k, v = jnp.repeat(k, 4, 2), jnp.repeat(v, 4, 2)
        s = jnp.einsum('bqhd,bkhd->bhqk', q, k, preferred_element_type=f32) / 8
        s = jnp.where(jnp.tril(jnp.ones((T, T), bool)), s, -1e30)
        x = x + jnp.einsum('bhqk,bkhd->bqhd', jax.nn.softmax(s).astype(bf16), v).reshape(B, T, 512) @ w['o']
        h = norm(x, w['n2'])
        return x + (jax.nn.silu(h @ w['w1']) * (h @ w['w3'])) @ w['w2'], None
    x, _ = lax.scan(layer, x, p['layers'])
    logits = norm(x, p['n'])[:, :-1].astype(f32) @ p['e'].T
    return jnp.mean(jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, ids[:, 1:, None], -1)[..., 0])


emit('llama_train_scan', lambda p, ids: jax.value_and_grad(prefill_loss)(p, ids), STACK, S((4, 128), i32))


# Convolutional nets with batch norm: training in half precision, squeeze and excite, transposed and dilated ones.
def bn(x, g, b, train=True):
    x32 = x.astype(f32)
    mu, var = x32.mean((0, 1, 2)), x32.var((0, 1, 2))
    return ((x32 - mu) * lax.rsqrt(var + 1e-5) * g + b).astype(x.dtype), (mu, var)


def resnet_loss(p, x, y, half):
    x = x.astype(half)
    stats = []

    def cbr(x, n, s=1, relu=True):
        y, st = bn(conv(x, p[n].astype(half), s), p[n + 'g'], p[n + 'b'])
        stats.append(st)
        return jax.nn.relu(y) if relu else y
    x = lax.reduce_window(cbr(x, 'stem', 2), -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), 'SAME') if half == f32 else cbr(x, 'stem', 2)
    for n, s in (('a', 1), ('b', 2)):
        r = cbr(x, n + 'p', s, False)
        x = jax.nn.relu(r + cbr(cbr(cbr(x, n + '1'), n + '2', s), n + '3', 1, False))
    l = x.astype(f32).mean((1, 2)) @ p['fc']
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(l) * jax.nn.one_hot(y, 100), -1)), stats


def conv_w(*names):
    out = {}
    for n, (h, i, o) in names:
        out |= {n: ((h, h, i, o), f32), n + 'g': ((o,), f32), n + 'b': ((o,), f32)}
    return out


RES = tree({**conv_w(('stem', (7, 3, 64)), ('ap', (1, 64, 128)), ('a1', (1, 64, 32)), ('a2', (3, 32, 32)), ('a3', (1, 32, 128)),
                     ('bp', (1, 128, 256)), ('b1', (1, 128, 64)), ('b2', (3, 64, 64)), ('b3', (1, 64, 256))), 'fc': ((256, 100), f32)})
for half, n in ((bf16, 'bf16'), (f32, 'f32')):
    def res_step(p, mom, x, y, half=half):
        (l, st), g = jax.value_and_grad(resnet_loss, has_aux=True)(p, x, y, half)
        mom = jax.tree.map(lambda m, g, p: 0.9 * m + g + 1e-4 * p, mom, g, p)
        return jax.tree.map(lambda p, m: p - 0.1 * m, p, mom), mom, l, st
    emit(f'resnet_train_{n}', res_step, RES, RES, S((16, 64, 64, 3), f32), S((16,), i32))


def effnet(p, x):
    x = x.astype(bf16)
    for n in range(2):
        h = jax.nn.silu(conv(x, p[f'e{n}']) * p[f's{n}'] + p[f't{n}'])
        h = jax.nn.silu(conv(h, p[f'd{n}'], groups=96))
        s = jax.nn.sigmoid(jax.nn.silu(h.astype(f32).mean((1, 2)).astype(bf16) @ p[f'q{n}']) @ p[f'r{n}'])
        x = x + conv(h * s[:, None, None], p[f'p{n}'])
    return x


emit('effnet_infer', effnet, tree({k: v for n in range(2) for k, v in {f'e{n}': ((1, 1, 24, 96), bf16), f's{n}': ((96,), bf16), f't{n}': ((96,), bf16),
     f'd{n}': ((5, 5, 1, 96), bf16), f'q{n}': ((96, 6), bf16), f'r{n}': ((6, 96), bf16), f'p{n}': ((1, 1, 96, 24), bf16)}.items()}), S((8, 56, 56, 24), f32))


def gan(g, d, z, real):
    def gen(g, z):
        x = jax.nn.relu((z @ g['f']).reshape(-1, 8, 8, 64))
        x = jax.nn.relu(lax.conv_transpose(x, g['c1'], (2, 2), 'SAME'))
        return jnp.tanh(lax.conv_transpose(x, g['c2'], (2, 2), 'SAME'))

    def dis(d, x):
        x = jax.nn.leaky_relu(conv(x, d['c1'], 2), 0.2)
        x = jax.nn.leaky_relu(conv(x, d['c2'], 2, dil=1), 0.2)
        return x.reshape(x.shape[0], -1) @ d['f']
    ld = lambda d: jnp.mean(jax.nn.softplus(-dis(d, real))) + jnp.mean(jax.nn.softplus(dis(d, gen(g, z))))
    lg = lambda g: jnp.mean(jax.nn.softplus(-dis(d, gen(g, z))))
    return jax.grad(ld)(d), jax.grad(lg)(g)


emit('gan_train', gan, tree({'f': ((64, 4096), f32), 'c1': ((4, 4, 64, 32), f32), 'c2': ((4, 4, 32, 3), f32)}),
     tree({'c1': ((4, 4, 3, 32), f32), 'c2': ((4, 4, 32, 64), f32), 'f': ((4096, 1), f32)}), S((16, 64), f32), S((16, 32, 32, 3), f32))


# Sequences otherwise: a state-space scan, a GRU, CTC, beams, T5's relative positions, a whisper-like encoder.
def ssm(p, x):
    u = x @ p['i']
    dt = jax.nn.softplus(x @ p['dt'])
    a = jnp.exp(-dt[..., None] * jnp.exp(p['a']))
    b = dt[..., None] * u[..., None] * (x @ p['b'])[:, :, None, :]
    _, h = lax.associative_scan(lambda l, r: (l[0] * r[0], r[0] * l[1] + r[1]), (a, b), axis=1)
    return jnp.einsum('btdn,btn->btd', h, x @ p['c']) * jax.nn.silu(x @ p['z'])


SSM = tree({'i': ((64, 64), f32), 'dt': ((64, 64), f32), 'a': ((64, 8), f32), 'b': ((64, 8), f32), 'c': ((64, 8), f32), 'z': ((64, 64), f32)})
emit('ssm_infer', ssm, SSM, S((4, 128, 64), f32))
emit('ssm_train', lambda p, x: jax.value_and_grad(lambda p: jnp.mean(ssm(p, x) ** 2))(p), SSM, S((4, 64, 64), f32))


def gru(p, x):
    def cell(h, x):
        z, r = jnp.split(jax.nn.sigmoid(x @ p['wx'] + h @ p['wh']), 2, -1)
        n = jnp.tanh(x @ p['nx'] + (r * h) @ p['nh'])
        h = (1 - z) * n + z * h
        return h, h
    return lax.scan(cell, jnp.zeros((x.shape[1], 128)), x)[1]


emit('gru_train', lambda p, x, y: jax.value_and_grad(lambda p: jnp.mean((gru(p, x) - y) ** 2))(p),
     tree({'wx': ((64, 256), f32), 'wh': ((128, 256), f32), 'nx': ((64, 128), f32), 'nh': ((128, 128), f32)}), S((32, 16, 64), f32), S((32, 16, 128), f32))


def ctc(logits, labels):
    lp = jax.nn.log_softmax(logits)
    ext = jnp.zeros((labels.shape[0], 2 * labels.shape[1] + 1), i32).at[:, 1::2].set(labels)
    skip = (ext != 0) & (ext != jnp.roll(ext, 2, 1))
    start = jnp.where(jnp.arange(ext.shape[1]) < 2, jnp.take_along_axis(lp[:, 0], ext, 1), -1e30)

    def step(a, l):
        one = jnp.pad(a, ((0, 0), (1, 0)), constant_values=-1e30)[:, :-1]
        two = jnp.where(skip, jnp.pad(a, ((0, 0), (2, 0)), constant_values=-1e30)[:, :-2], -1e30)
        return jnp.logaddexp(jnp.logaddexp(a, one), two) + jnp.take_along_axis(l, ext, 1), None
    a, _ = lax.scan(step, start, jnp.moveaxis(lp, 1, 0)[1:])
    return -jnp.mean(jnp.logaddexp(a[:, -1], a[:, -2]))


emit('ctc_grad', lambda l, y: jax.value_and_grad(ctc)(l, y), S((8, 50, 32), f32), S((8, 10), i32))


def t5(p, x):
    B, T, _ = x.shape
    rel = jnp.arange(T)[None] - jnp.arange(T)[:, None]
    n = jnp.abs(rel)
    bucket = jnp.where(rel > 0, 16, 0) + jnp.where(n < 8, n, jnp.minimum(15, 8 + (jnp.log(jnp.maximum(n, 1) / 8) / jnp.log(16.0) * 8).astype(i32)))
    bias = p['bias'][bucket].transpose(2, 0, 1)[None]
    h = norm(x, p['n'])
    q, k, v = [(h @ p[n]).reshape(B, T, 8, 32).transpose(0, 2, 1, 3) for n in 'qkv']
    a = jax.nn.softmax((q @ k.transpose(0, 1, 3, 2)).astype(f32) + bias).astype(x.dtype)
    x = x + (a @ v).transpose(0, 2, 1, 3).reshape(B, T, 256) @ p['o']
    h = norm(x, p['m'])
    return x + (jax.nn.gelu(h @ p['w1']) * (h @ p['w3'])) @ p['w2']


T5 = {**{n: ((256, 256), bf16) for n in 'qkvo'}, 'bias': ((32, 8), f32), 'n': ((256,), f32), 'm': ((256,), f32), 'w1': ((256, 512), bf16), 'w3': ((256, 512), bf16), 'w2': ((512, 256), bf16)}
emit('t5_infer', t5, tree(T5), S((4, 96, 256), bf16))
emit('t5_train', lambda p, x: jax.value_and_grad(lambda p: jnp.mean(t5(p, x).astype(f32) ** 2))(p), tree(T5), S((4, 96, 256), bf16))


def whisper(p, mel):
    x = jax.nn.gelu(lax.conv_general_dilated(mel, p['c1'], (1,), [(1, 1)], dimension_numbers=('NWC', 'WIO', 'NWC')))
    x = jax.nn.gelu(lax.conv_general_dilated(x, p['c2'], (2,), [(1, 1)], dimension_numbers=('NWC', 'WIO', 'NWC')))
    x = x + p['pos'][None, :x.shape[1]]
    B, T, C = x.shape
    h = norm(x, p['g'], p['b'])
    q, k, v = [(h @ p[n]).reshape(B, T, 4, C // 4) for n in 'qkv']
    a = jax.nn.softmax(jnp.einsum('bqhd,bkhd->bhqk', q * 0.125, k))
    return x + jnp.einsum('bhqk,bkhd->bqhd', a, v).reshape(B, T, C) @ p['o']


emit('whisper_encoder', whisper, tree({'c1': ((3, 80, 256), f32), 'c2': ((3, 256, 256), f32), 'pos': ((512, 256), f32), 'g': ((256,), f32), 'b': ((256,), f32),
     **{n: ((256, 256), f32) for n in 'qkvo'}}), S((2, 300, 80), f32))


def beams(logp, step):
    def one(s, lp):
        seq, score, i = s
        all_ = score[..., None] + lp
        top, at = lax.top_k(all_.reshape(all_.shape[0], -1), 4)
        seq = jnp.take_along_axis(seq, (at // lp.shape[-1])[..., None], 1)
        seq = lax.dynamic_update_slice(seq, (at % lp.shape[-1])[..., None].astype(i32), (0, 0, i))
        return (seq, top, i + 1), None
    return lax.scan(one, (jnp.zeros((8, 4, 16), i32), jnp.zeros((8, 4)), 0), logp)[0]


emit('beam_search', beams, S((16, 8, 4, 100), f32), S((), i32))


# Others: a radiance field, graph attention, quantised products, image losses, a simulation, statistics.
def nerf(p, o, d):
    t = jnp.linspace(2.0, 6.0, 32)
    x = o[:, None] + d[:, None] * t[:, None]
    e = jnp.concatenate([x] + [f(x * 2.0 ** n) for n in range(6) for f in (jnp.sin, jnp.cos)], -1)
    h = jax.nn.relu(e @ p['a'])
    h = jax.nn.relu(jnp.concatenate([jax.nn.relu(h @ p['b']), e], -1) @ p['c'])
    out = h @ p['o']
    alpha = 1 - jnp.exp(-jax.nn.softplus(out[..., 3]) * 0.125)
    w = alpha * jnp.cumprod(jnp.concatenate([jnp.ones((o.shape[0], 1)), 1 - alpha[:, :-1] + 1e-10], 1), 1)
    return jnp.sum(w[..., None] * jax.nn.sigmoid(out[..., :3]), 1)


NERF = tree({'a': ((39, 128), f32), 'b': ((128, 128), f32), 'c': ((167, 128), f32), 'o': ((128, 4), f32)})
emit('nerf_train', lambda p, o, d, c: jax.value_and_grad(lambda p: jnp.mean((nerf(p, o, d) - c) ** 2))(p), NERF, S((256, 3), f32), S((256, 3), f32), S((256, 3), f32))


def gat(p, x, s, r):
    h = (x @ p['w']).reshape(-1, 4, 16)
    e = jax.nn.leaky_relu((h * p['l']).sum(-1)[s] + (h * p['r']).sum(-1)[r], 0.2)
    e = jnp.exp(e - jax.ops.segment_max(e, r, 1000)[r])
    a = e / jax.ops.segment_sum(e, r, 1000)[r]
    return jax.nn.elu(jax.ops.segment_sum(a[..., None] * h[s], r, 1000).reshape(1000, 64))


emit('gat_train', lambda p, x, s, r: jax.value_and_grad(lambda p: jnp.mean(gat(p, x, s, r) ** 2))(p),
     tree({'w': ((32, 64), f32), 'l': ((4, 16), f32), 'r': ((4, 16), f32)}), S((1000, 32), f32), S((5000,), i32), S((5000,), i32))


def quantised(x, w, sw):
    sx = jnp.max(jnp.abs(x), -1, keepdims=True) / 127
    q = jnp.clip(jnp.round(x / sx), -127, 127).astype(jnp.int8)
    y = lax.dot_general(q, w, (((1,), (0,)), ((), ())), preferred_element_type=i32).astype(f32) * sx * sw
    return jax.nn.relu(y)


emit('dynamic_int8', quantised, S((256, 512), f32), S((512, 256), jnp.int8), S((256,), f32))
emit('fp8_dense', lambda x, w, s: jax.nn.gelu((x.astype(jnp.float8_e4m3fn).astype(bf16) @ w.astype(bf16)) * s), S((256, 512), bf16), S((512, 256), jnp.float8_e4m3fn), S((), bf16))
emit('int4_weights', lambda x, w, s: x @ (w.astype(bf16).reshape(4, 128, 256) * s[:, None]).reshape(512, 256), S((64, 512), bf16), S((512, 256), jnp.int4), S((4, 256), bf16))


def ssim(a, b):
    k = jnp.ones((11, 11, 1, 1)) / 121
    f = lambda x: lax.conv_general_dilated(x, k, (1, 1), 'VALID', dimension_numbers=('NHWC', 'HWIO', 'NHWC'))
    ma, mb = f(a), f(b)
    va, vb, c = f(a * a) - ma * ma, f(b * b) - mb * mb, f(a * b) - ma * mb
    return jnp.mean((2 * ma * mb + 1e-4) * (2 * c + 9e-4) / ((ma * ma + mb * mb + 1e-4) * (va + vb + 9e-4)))


emit('ssim_grad', jax.grad(ssim), S((4, 64, 64, 1), f32), S((4, 64, 64, 1), f32))


def heat(u, n):
    def step(_, u):
        p = jnp.pad(u, 1, mode='edge')
        return u + 0.1 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u)
    return lax.fori_loop(0, n, step, u)


emit('heat', lambda u: heat(u, 100), S((256, 256), f32))
emit('kmeans', lambda x, c: lax.fori_loop(0, 10, lambda _, c: (lambda a: (a.T @ x) / jnp.maximum(a.sum(0), 1)[:, None])(jax.nn.one_hot(jnp.argmin(((x[:, None] - c) ** 2).sum(-1), -1), 16)), c), S((2000, 8), f32), S((16, 8), f32))
emit('hmm_vjp', lambda t, e, o: jax.value_and_grad(lambda t: jnp.sum(lax.scan(lambda a, i: (jax.nn.logsumexp(a[:, None] + t, 0) + e[:, i], None), jnp.zeros(12), o)[0]))(t), S((12, 12), f32), S((12, 20), f32), S((40,), i32))
emit('welford', lambda x: (x.mean((0, 2)), x.std((0, 2)), jnp.median(x, 1), jnp.corrcoef(x[0]), jnp.histogram(x[0, 0], 10)[0]), S((4, 32, 128), f32))
emit('losses', lambda l, y, w: (jax.nn.log_softmax(l, 0).sum(), jnp.sum(jnp.where(y > 0, jax.nn.softplus(-l), jax.nn.softplus(l)) * w), jnp.mean(jnp.abs(l - y)), jnp.max(l, axis=(0, 1)), jnp.sum(l * y, 0) / (jnp.linalg.norm(l, axis=0) * jnp.linalg.norm(y, axis=0))), S((64, 32, 10), f32), S((64, 32, 10), f32), S((32, 10), f32))
