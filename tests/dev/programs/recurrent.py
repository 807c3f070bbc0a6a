"""Sequences otherwise than by attention alone: state spaces, decaying sums, linear attention, several layers of LSTM, audio; recommenders and graphs by segments."""
import jax
import jax.numpy as jnp
from jax import lax

from .common import S, bf16, emit, f32, i32, norm, tree, u32


# Mamba: a causal convolution by depth, a selective scan, in half precision, with its gradient.
def mamba(p, x):
    h = norm(x, p['n']) @ p['in']
    u, z = jnp.split(h, 2, -1)
    u = lax.conv_general_dilated(u, p['conv'], (1,), [(3, 0)], dimension_numbers=('NWC', 'WIO', 'NWC'), feature_group_count=u.shape[-1])
    u = jax.nn.silu(u + p['cb'])
    dbc = u @ p['x']
    dt = jax.nn.softplus((dbc[..., :16] @ p['dt']).astype(f32) + p['db'])
    b, c = dbc[..., 16:32].astype(f32), dbc[..., 32:].astype(f32)
    a = jnp.exp(dt[..., None] * -jnp.exp(p['a']))
    bu = (dt * u.astype(f32))[..., None] * b[:, :, None]
    _, s = lax.associative_scan(lambda l, r: (l[0] * r[0], r[0] * l[1] + r[1]), (a, bu), axis=1)
    y = jnp.einsum('btdn,btn->btd', s, c) + u.astype(f32) * p['d']
    return x + (y.astype(x.dtype) * jax.nn.silu(z)) @ p['out']


MAMBA = tree({'n': ((256,), f32), 'in': ((256, 1024), bf16), 'conv': ((4, 1, 512), bf16), 'cb': ((512,), bf16), 'x': ((512, 48), bf16), 'dt': ((16, 512), bf16), 'db': ((512,), f32), 'a': ((512, 16), f32), 'd': ((512,), f32), 'out': ((512, 256), bf16)})
emit('mamba_train_bf16', lambda p, x, y: jax.value_and_grad(lambda p: jnp.mean((mamba(p, x).astype(f32) - y) ** 2))(p), MAMBA, S((4, 128, 256), bf16), S((4, 128, 256), f32), platform='cuda')


# RWKV: shifted tokens, a running sum whose exponents are kept below a maximum.
def rwkv(p, x):
    prev = jnp.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :-1]
    mix = lambda n: x * p['m' + n] + prev * (1 - p['m' + n])
    k, v, r = mix('k') @ p['k'], mix('v') @ p['v'], jax.nn.sigmoid(mix('r') @ p['r'])

    def one(c, kv):
        a, b, o = c
        k, v = kv
        m = jnp.maximum(o, p['u'] + k)
        e1, e2 = jnp.exp(o - m), jnp.exp(p['u'] + k - m)
        out = (e1 * a + e2 * v) / (e1 * b + e2)
        m = jnp.maximum(o + p['w'], k)
        e1, e2 = jnp.exp(o + p['w'] - m), jnp.exp(k - m)
        return (e1 * a + e2 * v, e1 * b + e2, m), out
    zero = jnp.zeros((x.shape[0], x.shape[2]))
    _, y = lax.scan(one, (zero, zero, zero - 1e38), (k.swapaxes(0, 1), v.swapaxes(0, 1)), unroll=2)
    x = x + (r * y.swapaxes(0, 1)) @ p['o']
    return x + jnp.square(jax.nn.relu(x @ p['f'])) @ p['g']


RWKV = tree({**{n: ((512, 512), f32) for n in 'kvro'}, **{n: ((512,), f32) for n in ('mk', 'mv', 'mr', 'u', 'w')}, 'f': ((512, 2048), f32), 'g': ((2048, 512), f32)})
emit('rwkv_train', lambda p, x: jax.value_and_grad(lambda p: jnp.mean(rwkv(p, x) ** 2))(p), RWKV, S((8, 128, 512), f32), platform='cuda')


# Linear attention by chunks with decay; another by features of random projections, causal by cumulative sums.
def retention(p, x):
    B, T, D = x.shape
    q, k, v = [(x @ p[n]).reshape(B, T // 64, 64, 8, D // 8).transpose(1, 0, 3, 2, 4) for n in 'qkv']
    g = jnp.log(1 - 2.0 ** (-5 - jnp.arange(8)))
    d = jnp.arange(64)[:, None] - jnp.arange(64)
    mask = jnp.where(d >= 0, jnp.exp(g[:, None, None] * d), 0)
    decay = jnp.exp(g[:, None] * (jnp.arange(64) + 1))[..., None]

    def one(s, qkv):
        q, k, v = qkv
        y = ((q @ k.swapaxes(-1, -2)) * mask) @ v + (q @ s) * decay
        return jnp.exp(64 * g)[:, None, None] * s + (k * decay[:, ::-1]).swapaxes(-1, -2) @ v, y
    _, y = lax.scan(one, jnp.zeros((B, 8, D // 8, D // 8)), (q, k, v))
    y = y.transpose(1, 0, 3, 2, 4)
    y = (y - y.mean(-1, keepdims=True)) * lax.rsqrt(y.var(-1, keepdims=True) + 1e-5)
    return (jax.nn.silu(x @ p['g']) * y.reshape(B, T, D)) @ p['o']


emit('retnet_chunks_train', lambda p, x: jax.value_and_grad(lambda p: jnp.mean(retention(p, x) ** 2))(p), tree({n: ((512, 512), f32) for n in 'qkvgo'}), S((4, 512, 512), f32), platform='cuda')


def performer(q, k, v, w):
    f = lambda x: jnp.exp(x @ w - jnp.square(x).sum(-1, keepdims=True) / 2 - lax.stop_gradient(jnp.max(x @ w, (-1, -2), keepdims=True))) + 1e-4
    qf, kf = f(q), f(k)
    kv = jnp.cumsum(kf[..., None] * v[..., None, :], 2)
    return jnp.einsum('bhtm,bhtmd->bhtd', qf, kv) / jnp.einsum('bhtm,bhtm->bht', qf, jnp.cumsum(kf, 2))[..., None]


emit('performer_cumsum_grad', lambda q, k, v, w: jax.grad(lambda q, k, v: jnp.sum(performer(q, k, v, w) ** 2), (0, 1, 2))(q, k, v), *[S((2, 4, 256, 32), f32)] * 3, S((32, 64), f32), platform='cuda')


# Two directions and two layers of LSTM with packed lengths, and a decoder that looks back, trained.
def lstm_layer(w, x, live, reverse):
    def one(c, t):
        h, s = c
        x, m = t
        i, f, g, o = jnp.split(x + h @ w['h'] + w['b'], 4, -1)
        s2 = jax.nn.sigmoid(f + 1) * s + jax.nn.sigmoid(i) * jnp.tanh(g)
        h2 = jax.nn.sigmoid(o) * jnp.tanh(s2)
        return (jnp.where(m, h2, h), jnp.where(m, s2, s)), jnp.where(m, h2, 0)
    z = jnp.zeros((x.shape[1], 256))
    return lax.scan(one, (z, z), (x @ w['x'], live), reverse=reverse)


def seq2seq_loss(p, src, lens, tgt):
    live = (jnp.arange(src.shape[1])[:, None] < lens)[..., None]
    x = p['e'][src].swapaxes(0, 1)
    for n in range(2):
        (cf, f), (cb, b) = lstm_layer(p[f'f{n}'], x, live, False), lstm_layer(p[f'b{n}'], x, live, True)
        x = jnp.concatenate([f, b], -1)
    mem = x.swapaxes(0, 1)

    def one(c, y):
        h, s = c
        a = jax.nn.softmax(jnp.where(live[:, :, 0].T, jnp.einsum('bd,btd->bt', h @ p['wa'], mem), -1e9))
        z = jnp.concatenate([y, jnp.einsum('bt,btd->bd', a, mem), h], -1) @ p['wd']
        i, f, g, o = jnp.split(z, 4, -1)
        s = jax.nn.sigmoid(f) * s + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(s)
        return (h, s), h
    _, h = lax.scan(one, (cf[0] + cb[0], cf[1] + cb[1]), p['e'][tgt[:, :-1]].swapaxes(0, 1))
    logp = jax.nn.log_softmax(h @ p['out'])
    return -jnp.mean(jnp.take_along_axis(logp, tgt[:, 1:].T[..., None], -1))


LAYER_OF = lambda i: tree({'x': ((i, 1024), f32), 'h': ((256, 1024), f32), 'b': ((1024,), f32)})
emit('seq2seq_bilstm_train', jax.value_and_grad(seq2seq_loss), {'e': S((8000, 256), f32), 'f0': LAYER_OF(256), 'b0': LAYER_OF(256), 'f1': LAYER_OF(512), 'b1': LAYER_OF(512), 'wa': S((256, 512), f32), 'wd': S((1024, 1024), f32), 'out': S((256, 8000), f32)},
     S((32, 40), i32), S((32,), i32), S((32, 31), i32), platform='cuda')


# Audio: a bank of mel filters over frames by FFT, grouped convolutions with gated units, weights by norm and direction, a CTC loss of optax's form.
def mel(x, fb):
    frames = x[:, jnp.arange(0, x.shape[1] - 399, 160)[:, None] + jnp.arange(400)] * jnp.hanning(400)
    return jnp.log(jnp.square(jnp.abs(jnp.fft.rfft(frames, 512))) @ fb + 1e-6)


def wav_loss(p, x, labels, llen):
    h = mel(x, p['fb'])
    h = (h - h.mean((1, 2), keepdims=True)) / (h.std((1, 2), keepdims=True) + 1e-5)
    c = lambda x, w, s=1, g=1: lax.conv_general_dilated(x, w, (s,), 'SAME', dimension_numbers=('NWC', 'WIO', 'NWC'), feature_group_count=g)
    h = jax.nn.gelu(c(h, p['a'], 2))
    w = p['wv'] * (p['wg'] / jnp.linalg.norm(p['wv'], axis=(1, 2), keepdims=True))
    h = h + jax.nn.gelu(c(h, w, 1, 16))
    a, b = jnp.split(h @ p['glu'], 2, -1)
    h = h + c(a * jax.nn.sigmoid(b), p['dw'], 1, 256)
    lp = jax.nn.log_softmax(h @ p['out'])
    B, T, _ = lp.shape
    emitted = jnp.take_along_axis(lp, jnp.broadcast_to(labels[:, None], (B, T, labels.shape[1])), 2)
    rep = (labels[:, 1:] == labels[:, :-1]).astype(f32)

    def one(c, t):
        phi, emit_ = c
        blank, e = t
        prev = jnp.concatenate([jnp.logaddexp(phi[:, :-1], emit_ - 1e5 * jnp.pad(rep, ((0, 0), (0, 1)))), phi[:, -1:]], 1)
        emit2 = jnp.logaddexp(prev[:, :-1] + e, emit_ + e)
        phi = jnp.logaddexp(phi + blank, jnp.pad(emit_, ((0, 0), (1, 0)), constant_values=-1e5) + blank)
        return (phi, emit2), None
    phi = jnp.full((B, labels.shape[1] + 1), -1e5).at[:, 0].set(0.0)
    (phi, _), _ = lax.scan(one, (phi, jnp.full(labels.shape, -1e5)), (lp[..., :1].swapaxes(0, 1), emitted.swapaxes(0, 1)))
    return -jnp.mean(jnp.take_along_axis(phi, llen[:, None], 1))


emit('audio_ctc_train', jax.value_and_grad(wav_loss), tree({'fb': ((257, 80), f32), 'a': ((3, 80, 256), f32), 'wv': ((31, 16, 256), f32), 'wg': ((31, 1, 1), f32), 'glu': ((256, 512), f32), 'dw': ((15, 1, 256), f32), 'out': ((256, 64), f32)}),
     S((4, 16000), f32), S((4, 20), i32), S((4,), i32), platform='cuda')


# A recommender: bags of embeddings by segments, products of all pairs, wide and deep parts, AdaGrad by rows that were read.
def dlrm(p, dense, ids, bags):
    h = jax.nn.relu(jax.nn.relu(dense @ p['b1']) @ p['b2'])
    e = jax.vmap(lambda t, i, b: jax.ops.segment_sum(t[i], b, num_segments=dense.shape[0], indices_are_sorted=True))(p['t'], ids, bags)
    z = jnp.concatenate([h[None], e]).swapaxes(0, 1)
    i, j = jnp.tril_indices(9, -1)
    x = jnp.concatenate([h, jnp.einsum('bnd,bmd->bnm', z, z)[:, i, j]], 1)
    cross = x * (x @ p['cw'] + p['cb']) + x
    return (jax.nn.relu(cross @ p['t1']) @ p['t2'])[:, 0]


def dlrm_step(p, acc, dense, ids, bags, y):
    loss = lambda p: jnp.mean(jax.nn.softplus(-(2 * y - 1) * dlrm(p, dense, ids, bags)))
    l, g = jax.value_and_grad(loss)(p)
    acc = jax.tree.map(lambda a, g: a + g * g, acc, g)
    return jax.tree.map(lambda p, a, g: p - 0.01 * g * lax.rsqrt(a + 1e-10), p, acc, g), acc, l


DLRM = tree({'b1': ((13, 256), f32), 'b2': ((256, 64), f32), 't': ((8, 20000, 64), f32), 'cw': ((100, 100), f32), 'cb': ((100,), f32), 't1': ((100, 256), f32), 't2': ((256, 1), f32)})
emit('dlrm_adagrad', dlrm_step, DLRM, DLRM, S((1024, 13), f32), S((8, 4096), i32), S((8, 4096), i32), S((1024,), f32), platform='cuda')


# Experts by sorting: tokens in their experts' order, products by group, back by a scatter; balance losses.
def moe_sorted(p, x):
    logits = (x @ p['r']).astype(f32)
    gate, at = lax.top_k(jax.nn.softmax(logits), 2)
    gate = gate / gate.sum(-1, keepdims=True)
    flat = at.reshape(-1)
    order = jnp.argsort(flat, stable=True)
    sizes = jnp.bincount(flat, length=8)
    start = jnp.cumsum(sizes) - sizes
    slot = jnp.arange(flat.size) - start[flat[order]]
    xs = x[order // 2]
    room = jnp.zeros((8, 384, x.shape[1]), x.dtype).at[flat[order], slot].set(xs, mode='drop')
    h = jax.nn.silu(jnp.einsum('ecd,edf->ecf', room, p['w1'])) * jnp.einsum('ecd,edf->ecf', room, p['w3'])
    y = jnp.einsum('ecf,efd->ecd', h, p['w2']).at[flat[order], slot].get(mode='fill', fill_value=0)
    out = jnp.zeros_like(x).at[order // 2].add(y * gate.reshape(-1)[order, None].astype(x.dtype))
    return out, 8 * jnp.sum(jax.nn.softmax(logits).mean(0) * sizes / flat.size) + 1e-3 * jnp.mean(jax.nn.logsumexp(logits, -1) ** 2)


MOE = tree({'r': ((512, 8), bf16), 'w1': ((8, 512, 1024), bf16), 'w3': ((8, 512, 1024), bf16), 'w2': ((8, 1024, 512), bf16)})
emit('moe_sorted_infer', lambda p, x: moe_sorted(p, x)[0], MOE, S((1024, 512), bf16), platform='cuda')
emit('moe_sorted_train', lambda p, x: jax.value_and_grad(lambda p: (lambda o, a: jnp.mean(o.astype(f32) ** 2) + 0.01 * a)(*moe_sorted(p, x)))(p), MOE, S((1024, 512), bf16), platform='cuda')


# Messages between nodes with features of edges, gated units, statistics by segments, pooled by graph.
def mpnn_loss(p, x, e, s, r, graph, y):
    n = x.shape[0]
    h = x @ p['in']
    for _ in range(2):
        m = jax.nn.relu(jnp.concatenate([h[s], h[r], e], -1) @ p['m1']) @ p['m2']
        mean = jax.ops.segment_sum(m, r, n) / jnp.maximum(jax.ops.segment_sum(jnp.ones(s.shape), r, n), 1)[:, None]
        most, least = jax.ops.segment_max(m, r, n), -jax.ops.segment_max(-m, r, n)
        a = jnp.concatenate([mean, jnp.where(jnp.isfinite(most), most, 0), jnp.where(jnp.isfinite(least), least, 0)], -1) @ p['a']
        z, q = jnp.split(jax.nn.sigmoid(jnp.concatenate([h, a], -1) @ p['zr']), 2, -1)
        h = (1 - z) * h + z * jnp.tanh(jnp.concatenate([q * h, a], -1) @ p['c'])
    out = jax.ops.segment_sum(h, graph, 64, indices_are_sorted=True) @ p['o']
    return jnp.mean((out[:, 0] - y) ** 2)


emit('mpnn_molecules_train', jax.value_and_grad(mpnn_loss), tree({'in': ((40, 128), f32), 'm1': ((268, 256), f32), 'm2': ((256, 128), f32), 'a': ((384, 128), f32), 'zr': ((256, 256), f32), 'c': ((256, 128), f32), 'o': ((128, 1), f32)}),
     S((1500, 40), f32), S((3200, 12), f32), S((3200,), i32), S((3200,), i32), S((1500,), i32), S((64,), f32), platform='cuda')


# Words by negative sampling, hashed grids of features, a lookup with hashing by shifts and products of words.
def skipgram(w, c, i, o, key):
    neg = jax.random.randint(jax.random.wrap_key_data(key), (i.shape[0], 10), 0, c.shape[0])
    def loss(w, c):
        v = w[i]
        return -jnp.mean(jax.nn.log_sigmoid(jnp.sum(v * c[o], -1)) + jax.nn.log_sigmoid(-jnp.einsum('bd,bnd->bn', v, c[neg])).sum(-1))
    gw, gc = jax.grad(loss, (0, 1))(w, c)
    return w - 0.1 * gw, c - 0.1 * gc


emit('skipgram_negative', skipgram, S((20000, 128), f32), S((20000, 128), f32), S((2048,), i32), S((2048,), i32), S((2,), u32))


def hash_grid(p, x):
    feats = []
    for n in range(4):
        s = x * (16 * 2 ** n)
        lo = jnp.floor(s).astype(u32)
        f = s - lo
        acc = 0
        for c in range(8):
            bit = jnp.array([c & 1, c >> 1 & 1, c >> 2], u32)
            v = lo + bit
            h = (v[:, 0] ^ (v[:, 1] * u32(2654435761)) ^ (v[:, 2] * u32(805459861))) & u32(16383)
            acc = acc + p['t'][n][h] * jnp.prod(jnp.where(bit == 1, f, 1 - f), -1, keepdims=True)
        feats.append(acc)
    return jax.nn.relu(jnp.concatenate(feats, -1) @ p['a']) @ p['b']


emit('hash_grid_train', lambda p, x, y: jax.value_and_grad(lambda p: jnp.mean((hash_grid(p, x) - y) ** 2))(p), {'t': [S((16384, 2), f32)] * 4, 'a': S((8, 64), f32), 'b': S((64, 3), f32)}, S((8192, 3), f32), S((8192, 3), f32), platform='cuda')
