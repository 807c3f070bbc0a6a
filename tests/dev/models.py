#!/usr/bin/env python3
"""Small jax programs of many kinds as HLO text, for agreement beside the dumps: JAX_PYTHON models.py OUT_DIR

Each is traced and lowered (nothing is compiled or run) and written to OUT_DIR/NAME.hlo. `xla.py compile FILE --backend gpu --dump DIR/NAME
--flags "--xla_dump_hlo_as_proto --xla_dump_hlo_as_text"` makes the dumps that final_all.py takes."""
import os
import pathlib
import sys
os.environ['JAX_PLATFORMS'] = 'cpu'

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402

OUT = pathlib.Path(sys.argv[1])
OUT.mkdir(exist_ok=True, parents=True)
S = jax.ShapeDtypeStruct
f32, bf16, i32 = (jnp.float32, jnp.bfloat16, jnp.int32)


def emit(name, fn, *args):
    try:
        low = jax.jit(fn).lower(*args)
        t = low.compiler_ir('hlo').as_hlo_text(True)
        (OUT / f'{name}.hlo').write_text(t)
        print(name, t.count('\n'))
    except Exception as e:
        print(name, 'ERR', str(e)[:200])


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


def conv(x, w, s=1):
    return lax.conv_general_dilated(x, w, (s, s), 'SAME', dimension_numbers=('NHWC', 'HWIO', 'NHWC'))


def bn(x, g, b):
    mu = x.mean((0, 1, 2))
    va = x.var((0, 1, 2))
    return (x - mu) * lax.rsqrt(va + 1e-05) * g + b


def cnn(p, x):
    for w, g, b in p['c']:
        x = jax.nn.relu(bn(conv(x, w), g, b))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), 'VALID')
    return x.mean((1, 2)) @ p['w'] + p['b']


def cnn_step(p, x, y):

    def loss(p):
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(cnn(p, x)) * jax.nn.one_hot(y, 10), -1))
    l, g = jax.value_and_grad(loss)(p)
    return (jax.tree.map(lambda p, g: p - 0.1 * g, p, g), l)
CP = {'c': [(S((3, 3, 3, 32), f32), S((32,), f32), S((32,), f32)), (S((3, 3, 32, 64), f32), S((64,), f32), S((64,), f32)), (S((3, 3, 64, 128), f32), S((128,), f32), S((128,), f32))], 'w': S((128, 10), f32), 'b': S((10,), f32)}

emit('cnn_train', cnn_step, CP, S((64, 32, 32, 3), f32), S((64,), i32))
emit('cnn_infer_bf16', lambda p, x: cnn(jax.tree.map(lambda a: a.astype(bf16), p), x.astype(bf16)).astype(f32), CP, S((64, 32, 32, 3), f32))


def ln(x, g, b):
    mu = x.mean(-1, keepdims=True)
    va = ((x - mu) ** 2).mean(-1, keepdims=True)
    return (x - mu) * lax.rsqrt(va + 1e-05) * g + b


def rms(x, g):
    return x * lax.rsqrt((x.astype(f32) ** 2).mean(-1, keepdims=True) + 1e-06).astype(x.dtype) * g


def attn(x, wq, wk, wv, wo, h, causal=True):
    B, T, D = x.shape
    d = D // h
    q, k, v = [(x @ w).reshape(B, T, h, d) for w in (wq, wk, wv)]
    s = jnp.einsum('bthd,bshd->bhts', q, k) / np.sqrt(d)
    if causal:
        s = jnp.where(jnp.tril(jnp.ones((T, T), bool)), s, -1000000000.0)
    a = jax.nn.softmax(s.astype(f32), -1).astype(x.dtype)
    return jnp.einsum('bhts,bshd->bthd', a, v).reshape(B, T, D) @ wo


def block(x, p):
    x = x + attn(ln(x, p['g1'], p['b1']), p['q'], p['k'], p['v'], p['o'], 8)
    h = ln(x, p['g2'], p['b2'])
    return x + jax.nn.gelu(h @ p['w1'] + p['c1']) @ p['w2'] + p['c2']


def bp(D, F, t=f32):
    return dict(g1=S((D,), t), b1=S((D,), t), g2=S((D,), t), b2=S((D,), t), q=S((D, D), t), k=S((D, D), t), v=S((D, D), t), o=S((D, D), t), w1=S((D, F), t), c1=S((F,), t), w2=S((F, D), t), c2=S((D,), t))


def gpt(p, ids):
    x = p['e'][ids] + p['pos'][:ids.shape[1]]
    for b in p['bl']:
        x = block(x, b)
    return x @ p['e'].T
GP = dict(e=S((8192, 512), f32), pos=S((256, 512), f32), bl=[bp(512, 2048) for _ in range(2)])


def gpt_step(p, ids):

    def loss(p):
        l = gpt(p, ids[:, :-1])
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(l), ids[:, 1:, None], -1))
    l, g = jax.value_and_grad(loss)(p)
    n = jnp.sqrt(sum((jnp.sum(x * x) for x in jax.tree.leaves(g))))
    c = jnp.minimum(1.0, 1 / n)
    return (jax.tree.map(lambda p, g: p - 0.1 * c * g, p, g), l)
emit('gpt_train', gpt_step, GP, S((8, 129), i32))
h16 = jax.tree.map(lambda s: S(s.shape, bf16), GP)
emit('gpt_infer_bf16', gpt, h16, S((8, 128), i32))
SP = jax.tree.map(lambda s: S((4,) + s.shape, bf16), bp(512, 2048))


def scanned(p, x, y):

    def loss(p):
        o, _ = lax.scan(lambda c, l: (jax.checkpoint(block)(c, l), None), x, p)
        return jnp.mean((o.astype(f32) - y) ** 2)
    return jax.value_and_grad(loss)(p)
emit('scan_remat_bf16', scanned, SP, S((4, 128, 512), bf16), S((4, 128, 512), f32))


def decode(p, tok, ck, cv, pos):
    D, h = (512, 8)
    d = 64

    def rope(x, pos):
        fr = 1 / 10000 ** (jnp.arange(0, d, 2) / d)
        a = pos * fr
        c, s = (jnp.cos(a), jnp.sin(a))
        x1, x2 = (x[..., ::2], x[..., 1::2])
        return jnp.stack([x1 * c - x2 * s, x1 * s + x2 * c], -1).reshape(x.shape)

    def one(st, _):
        tok, ck, cv, pos = st
        x = p['e'][tok].astype(bf16)
        for i, l in enumerate(p['l']):
            y = rms(x, l['g'])
            q = rope((y @ l['q']).reshape(-1, h, d).astype(f32), pos)
            k = rope((y @ l['k']).reshape(-1, h, d).astype(f32), pos).astype(bf16)
            v = (y @ l['v']).reshape(-1, h, d)
            ck = lax.dynamic_update_slice(ck, k[None, :, None], (i, 0, pos, 0, 0))
            cv = lax.dynamic_update_slice(cv, v[None, :, None], (i, 0, pos, 0, 0))
            s = jnp.einsum('bhd,bthd->bht', q.astype(bf16), ck[i]).astype(f32) / 8
            s = jnp.where(jnp.arange(ck.shape[2]) <= pos, s, -1000000000.0)
            o = jnp.einsum('bht,bthd->bhd', jax.nn.softmax(s).astype(bf16), cv[i]).reshape(-1, D)
            x = x + o @ l['o']
            y = rms(x, l['g2'])
            x = x + jax.nn.silu(y @ l['w1']) * (y @ l['w3']) @ l['w2']
        lg = (x @ p['e'].T.astype(bf16)).astype(f32)
        tok = jnp.argmax(lg, -1).astype(i32)
        return ((tok, ck, cv, pos + 1), tok)
    return lax.scan(one, (tok, ck, cv, pos), None, length=16)
LP = dict(e=S((4096, 512), f32), l=[dict(g=S((512,), bf16), g2=S((512,), bf16), q=S((512, 512), bf16), k=S((512, 512), bf16), v=S((512, 512), bf16), o=S((512, 512), bf16), w1=S((512, 1024), bf16), w3=S((512, 1024), bf16), w2=S((1024, 512), bf16)) for _ in range(2)])
emit('llama_decode', decode, LP, S((4,), i32), S((2, 4, 128, 8, 64), bf16), S((2, 4, 128, 8, 64), bf16), S((), i32))


def lstm(p, x):

    def cell(c, x):
        h, s = c
        z = jnp.concatenate([x, h], -1) @ p['w'] + p['b']
        i, f, g, o = jnp.split(z, 4, -1)
        s = jax.nn.sigmoid(f) * s + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(s)
        return ((h, s), h)
    z = jnp.zeros((x.shape[1], 256))
    _, h = lax.scan(cell, (z, z), x)
    return h @ p['o']

emit('lstm_train', lambda p, x, y: jax.value_and_grad(lambda p: jnp.mean((lstm(p, x) - y) ** 2))(p), dict(w=S((384, 1024), f32), b=S((1024,), f32), o=S((256, 64), f32)), S((50, 32, 128), f32), S((50, 32, 64), f32))


def vit(p, x):
    x = lax.conv_general_dilated(x, p['patch'], (16, 16), 'VALID', dimension_numbers=('NHWC', 'HWIO', 'NHWC'))
    B = x.shape[0]
    x = x.reshape(B, -1, 384)
    x = jnp.concatenate([jnp.broadcast_to(p['cls'], (B, 1, 384)), x], 1) + p['pos']
    for b in p['bl']:
        x = x + attn(ln(x, b['g1'], b['b1']), b['q'], b['k'], b['v'], b['o'], 6, False)
        h = ln(x, b['g2'], b['b2'])
        x = x + jax.nn.gelu(h @ b['w1'] + b['c1']) @ b['w2'] + b['c2']
    return x[:, 0] @ p['head']

emit('vit_infer', vit, dict(patch=S((16, 16, 3, 384), f32), cls=S((1, 1, 384), f32), pos=S((1, 197, 384), f32), bl=[bp(384, 1536) for _ in range(2)], head=S((384, 1000), f32)), S((8, 224, 224, 3), f32))


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


def gn(x, g, b, G=8):
    B, H, W, C = x.shape
    y = x.reshape(B, H, W, G, C // G)
    mu = y.mean((1, 2, 4), keepdims=True)
    va = y.var((1, 2, 4), keepdims=True)
    return ((y - mu) * lax.rsqrt(va + 1e-05)).reshape(x.shape) * g + b


def unet(p, x, t):
    e = jnp.concatenate([jnp.sin(t[:, None] * jnp.arange(32)), jnp.cos(t[:, None] * jnp.arange(32))], -1) @ p['t']
    h = conv(x, p['i'])
    s = h
    h = conv(jax.nn.silu(gn(h, p['g1'], p['b1'])), p['c1']) + e[:, None, None]
    h = conv(jax.nn.silu(gn(h, p['g2'], p['b2'])), p['c2'], 2)
    B, H, W, C = h.shape
    a = attn(h.reshape(B, H * W, C), p['q'], p['k'], p['v'], p['o'], 4, False).reshape(h.shape) + h
    u = jax.image.resize(a, (B, 2 * H, 2 * W, C), 'nearest')
    u = jnp.concatenate([u, s], -1)
    return conv(jax.nn.silu(gn(u, p['g3'], p['b3'])), p['u'])
UP = dict(t=S((64, 64), f32), i=S((3, 3, 4, 64), f32), g1=S((64,), f32), b1=S((64,), f32), c1=S((3, 3, 64, 64), f32), g2=S((64,), f32), b2=S((64,), f32), c2=S((3, 3, 64, 64), f32), q=S((64, 64), f32), k=S((64, 64), f32), v=S((64, 64), f32), o=S((64, 64), f32), g3=S((128,), f32), b3=S((128,), f32), u=S((3, 3, 128, 4), f32))
emit('unet_infer', unet, UP, S((4, 32, 32, 4), f32), S((4,), f32))
emit('unet_train', lambda p, x, t, y: jax.value_and_grad(lambda p: jnp.mean((unet(p, x, t) - y) ** 2))(p), UP, S((4, 32, 32, 4), f32), S((4,), f32), S((4, 32, 32, 4), f32))
emit('embed_train', lambda e, w, i, y: jax.grad(lambda e, w: jnp.mean((e[i].mean(1) @ w - y) ** 2), (0, 1))(e, w), S((50000, 64), f32), S((64, 16), f32), S((256, 20), i32), S((256, 16), f32))
emit('sort_topk', lambda x, k: (jnp.sort(x, -1), jnp.argsort(k), lax.top_k(x, 8), jnp.percentile(x, 75.0), jnp.cumsum(x, -1), jnp.searchsorted(k, k[:100])), S((64, 1024), f32), S((5000,), f32))
emit('fft_filter', lambda x, h: jnp.fft.irfft(jnp.fft.rfft(x) * jnp.fft.rfft(h)), S((16, 4096), f32), S((4096,), f32))
emit('linalg', lambda a, b: (jnp.linalg.cholesky(a @ jnp.swapaxes(a, -1, -2) + jnp.eye(32)), jax.scipy.linalg.solve_triangular(jnp.tril(a), b, lower=True), jnp.linalg.det(a)), S((4, 32, 32), f32), S((4, 32, 8), f32))
emit('random', lambda k: (jax.random.normal(jax.random.wrap_key_data(k), (1000, 7)), jax.random.uniform(jax.random.wrap_key_data(k), (333,)), jax.random.permutation(jax.random.wrap_key_data(k), 100), jax.random.categorical(jax.random.wrap_key_data(k), jnp.zeros((8, 10)))), S((2,), jnp.uint32))
emit('int8_dense', lambda x, w, s: lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=i32).astype(f32) * s, S((128, 512), jnp.int8), S((512, 256), jnp.int8), S((256,), f32))
emit('depthwise', lambda x, w, q: jax.nn.relu6(lax.conv_general_dilated(lax.conv_general_dilated(x, w, (1, 1), 'SAME', dimension_numbers=('NHWC', 'HWIO', 'NHWC'), feature_group_count=32), q, (1, 1), 'SAME', dimension_numbers=('NHWC', 'HWIO', 'NHWC'))), S((8, 56, 56, 32), f32), S((3, 3, 1, 32), f32), S((1, 1, 32, 64), f32))
emit('ode_while', lambda y, t: lax.while_loop(lambda s: (s[1] < t) & (jnp.max(jnp.abs(s[0])) < 1000.0), lambda s: (s[0] + s[2] * jnp.sin(s[0]) @ jnp.ones((16, 16)), s[1] + s[2], jnp.where(jnp.mean(s[0]) > 0, s[2] * 0.9, s[2] * 1.1)), (y, 0.0, 0.01)), S((8, 16), f32), S((), f32))
emit('cond_vmap', jax.vmap(lambda x, i: lax.switch(i, [jnp.sin, jnp.cos, lambda x: x * x], x)), S((32, 100), f32), S((32,), i32))
emit('wavenet', lambda x, ws: sum((jnp.tanh(lax.conv_general_dilated(x, w, (1,), [(2 ** i, 0)], rhs_dilation=(2 ** i,), dimension_numbers=('NWC', 'WIO', 'NWC'))) for i, w in enumerate(ws))), S((4, 512, 32), f32), [S((2, 32, 32), f32)] * 4)
emit('conv3d_train', lambda w, x: jax.grad(lambda w: jnp.sum(lax.conv_general_dilated(x, w, (1, 1, 1), 'SAME', dimension_numbers=('NDHWC', 'DHWIO', 'NDHWC')) ** 2))(w), S((3, 3, 3, 8, 16), f32), S((2, 8, 16, 16, 8), f32))
emit('convt', lambda x, w: lax.conv_transpose(x, w, (2, 2), 'SAME'), S((4, 16, 16, 64), f32), S((4, 4, 64, 32), f32))
emit('complex_sig', lambda z: (jnp.abs(z), jnp.angle(z), (z @ z.conj().T).real), S((128, 64), jnp.complex64))
emit('nms', lambda b, s: lax.fori_loop(0, 32, lambda i, k: k & ~((jnp.minimum(b[:, 2], b[i, 2]) - jnp.maximum(b[:, 0], b[i, 0]) > 0.5) & (jnp.arange(100) > i) & k[i]), s > 0.1), S((100, 4), f32), S((100,), f32))
emit('batch_attn_mask_f16', lambda q, k, v, m: jnp.einsum('bhqk,bkhd->bqhd', jax.nn.softmax(jnp.where(m, jnp.einsum('bqhd,bkhd->bhqk', q, k), jnp.float16(-10000.0)), -1), v), S((2, 128, 4, 64), jnp.float16), S((2, 128, 4, 64), jnp.float16), S((2, 128, 4, 64), jnp.float16), S((2, 1, 128, 128), bool))
