"""What serves a language model: windows over a ring of keys, pages, sampling, drafts, weights in few bits with scales."""
import jax
import jax.numpy as jnp
from jax import lax

from .common import S, bf16, bool_, emit, f32, i32, norm, rope, tree, u32


# Grouped heads over a ring buffer of keys and values, all layers unrolled, early exit when every row has ended.
def ring_step(p, tok, ck, cv, pos):
    x = p['e'][tok].astype(bf16)
    W = ck.shape[2]
    at = pos % W
    age = (at - jnp.arange(W)) % W
    for n in range(2):
        w = p[f'l{n}']
        h = norm(x, w['n1'])
        qkv = h @ w['qkv']
        q = rope(qkv[:, :1024].reshape(-1, 1, 16, 64), pos[None, None])[:, 0]
        k = rope(qkv[:, 1024:1280].reshape(-1, 1, 4, 64), pos[None, None])[:, 0]
        ck = lax.dynamic_update_slice(ck, k[None, :, None], (n, 0, at, 0, 0))
        cv = lax.dynamic_update_slice(cv, qkv[:, 1280:].reshape(1, -1, 1, 4, 64), (n, 0, at, 0, 0))
        s = jnp.einsum('bgrd,btgd->bgrt', q.reshape(-1, 4, 4, 64), ck[n], preferred_element_type=f32) * 0.125
        s = jnp.where(age <= jnp.minimum(pos, W - 1), s, -1e30)
        a = jnp.einsum('bgrt,btgd->bgrd', jax.nn.softmax(s).astype(bf16), cv[n]).reshape(-1, 1024)
        x = x + a @ w['o']
        g, u = jnp.split(norm(x, w['n2']) @ w['gu'], 2, -1)
        x = x + (jax.nn.silu(g) * u) @ w['d']
    return (norm(x, p['n']) @ p['e'].astype(bf16).T).astype(f32), ck, cv


def until_ended(p, tok, ck, cv, pos, out):
    def go(s):
        return (s[3] < s[5]) & ~jnp.all(s[6])

    def one(s):
        tok, ck, cv, pos, out, stop, ended = s
        logits, ck, cv = ring_step(p, tok, ck, cv, pos)
        tok = jnp.where(ended, 0, jnp.argmax(logits, -1).astype(i32))
        return tok, ck, cv, pos + 1, lax.dynamic_update_index_in_dim(out, tok, pos, 1), stop, ended | (tok == 2)
    s = lax.while_loop(go, one, (tok, ck, cv, pos, out, jnp.int32(out.shape[1]), tok == 2))
    return s[4], s[3], s[1], s[2]


RING = tree({'n1': ((1024,), f32), 'n2': ((1024,), f32), 'qkv': ((1024, 1536), bf16), 'o': ((1024, 1024), bf16), 'gu': ((1024, 5632), bf16), 'd': ((2816, 1024), bf16)})
RINGS = {'e': S((16384, 1024), f32), 'n': S((1024,), f32), 'l0': RING, 'l1': RING}
KEYS = S((2, 16, 512, 4, 64), bf16)
emit('ring_cache_generate', until_ended, RINGS, S((16,), i32), KEYS, KEYS, S((), i32), S((16, 600), i32), platform='cuda')


# Pages of keys and values by a table; a chunk of new tokens each.
def paged(q, kp, vp, table, lens):
    B, T, H, D = q.shape
    k = kp[table].reshape(B, -1, 8, D)
    v = vp[table].reshape(B, -1, 8, D)
    s = jnp.einsum('bqgrd,bkgd->bgrqk', q.reshape(B, T, 8, H // 8, D), k).astype(f32) * D ** -0.5
    pos = lens[:, None] + jnp.arange(T)
    s = jnp.where(jnp.arange(k.shape[1]) <= pos[:, None, None, :, None], s, -jnp.inf)
    return jnp.einsum('bgrqk,bkgd->bqgrd', jax.nn.softmax(s).astype(q.dtype), v).reshape(B, T, H * D)


def put_pages(kp, k, table, lens):
    page = jnp.take_along_axis(table, (lens // 16)[:, None], 1)[:, 0]
    return kp.at[page, lens % 16].set(k)


emit('paged_attention', lambda q, k, v, kp, vp, table, lens, wo: (paged(q, put_pages(kp, k, table, lens), put_pages(vp, v, table, lens), table, lens) @ wo, put_pages(kp, k, table, lens)),
     S((16, 1, 32, 128), bf16), S((16, 8, 128), bf16), S((16, 8, 128), bf16), S((1024, 16, 8, 128), bf16), S((1024, 16, 8, 128), bf16), S((16, 64), i32), S((16,), i32), S((4096, 4096), bf16), platform='cuda')


# Sampling: penalties for what was said, temperature, the k likeliest, of these the likeliest of mass p, a draw by Gumbel noise.
def sample(logits, seen, key, temp, top_p):
    logits = jnp.where(seen > 0, jnp.where(logits > 0, logits / 1.2, logits * 1.2), logits) - 0.1 * seen
    top, at = lax.top_k(logits / jnp.maximum(temp, 1e-5)[:, None], 64)
    p = jax.nn.softmax(top)
    keep = jnp.cumsum(p, -1) - p < top_p[:, None]
    top = jnp.where(keep, top, -jnp.inf)
    n = jax.random.categorical(jax.random.wrap_key_data(key), top)
    tok = jnp.where(temp < 1e-4, at[:, 0], jnp.take_along_axis(at, n[:, None], 1)[:, 0])
    return tok, jnp.take_along_axis(jax.nn.log_softmax(logits), tok[:, None], 1)[:, 0], seen.at[jnp.arange(seen.shape[0]), tok].add(1.0)


emit('sample_top_k_p', sample, S((32, 50257), f32), S((32, 50257), f32), S((2,), u32), S((32,), f32), S((32,), f32))


def nucleus(logits, key, top_p):
    order = jnp.argsort(-logits, -1)
    p = jax.nn.softmax(jnp.take_along_axis(logits, order, -1))
    cut = jnp.sum(jnp.cumsum(p, -1) < top_p, -1, keepdims=True)
    least = jnp.take_along_axis(p, cut, -1)
    p = jnp.where(p < least, 0, p)
    u = jax.random.uniform(jax.random.wrap_key_data(key), (logits.shape[0], 1))
    n = jnp.sum(jnp.cumsum(p, -1) < u * p.sum(-1, keepdims=True), -1, keepdims=True)
    return jnp.take_along_axis(order, n, -1)[:, 0]


emit('sample_nucleus_sort', nucleus, S((16, 32000), bf16), S((2,), u32), S((), f32), platform='cuda')


# A draft's tokens judged by the large model: how many are taken, and one more.
def verify(draft, dp, tp, u):
    pd = jnp.take_along_axis(dp, draft[..., None], -1)[..., 0]
    pt = jnp.take_along_axis(tp[:, :-1], draft[..., None], -1)[..., 0]
    ok = u < pt / jnp.maximum(pd, 1e-9)
    n = jnp.sum(jnp.cumprod(ok.astype(i32), 1), 1)
    rest = jnp.maximum(tp[jnp.arange(n.size), n] - jnp.pad(dp, ((0, 0), (0, 1), (0, 0)))[jnp.arange(n.size), n], 0)
    return n, jnp.argmax(jnp.log(rest / rest.sum(-1, keepdims=True)), -1), jnp.where(jnp.arange(draft.shape[1]) < n[:, None], draft, -1)


emit('speculative_verify', verify, S((16, 5), i32), S((16, 5, 32000), f32), S((16, 6, 32000), f32), S((16, 5), f32), platform='cuda')


# Attention block by block, the softmax kept as a running maximum and sum, with slopes by head.
def blocked(q, k, v):
    B, H, T, D = q.shape
    slopes = 2.0 ** (-8 * (jnp.arange(H) + 1) / H)

    def rows(i):
        qi = lax.dynamic_slice_in_dim(q, i * 128, 128, 2)

        def one(c, j):
            m, l, o = c
            kj, vj = [lax.dynamic_slice_in_dim(x, j * 128, 128, 2) for x in (k, v)]
            d = (i * 128 + jnp.arange(128))[:, None] - (j * 128 + jnp.arange(128))
            s = jnp.einsum('bhqd,bhkd->bhqk', qi, kj, preferred_element_type=f32) * D ** -0.5 - slopes[:, None, None] * d
            s = jnp.where(d >= 0, s, -1e30)
            m2 = jnp.maximum(m, s.max(-1))
            p = jnp.exp(s - m2[..., None])
            f = jnp.exp(m - m2)
            return (m2, l * f + p.sum(-1), o * f[..., None] + jnp.einsum('bhqk,bhkd->bhqd', p.astype(v.dtype), vj, preferred_element_type=f32)), None
        zero = jnp.zeros((B, H, 128), f32)
        (m, l, o), _ = lax.scan(one, (zero - 1e30, zero, jnp.zeros((B, H, 128, D), f32)), jnp.arange(T // 128))
        return (o / l[..., None]).astype(q.dtype)
    return lax.map(rows, jnp.arange(T // 128))


emit('flash_alibi', blocked, *[S((2, 16, 1024, 64), bf16)] * 3, platform='cuda')
emit('flash_alibi_train', lambda q, k, v: jax.grad(lambda q, k, v: jnp.sum(blocked(q, k, v).astype(f32) ** 2), (0, 1, 2))(q, k, v), *[S((2, 8, 512, 64), bf16)] * 3, platform='cuda')


# Weights of eight bits by channel, of four by group with zero points, activations of eight bits by row; float8 with scales.
def int8_layer(p, x):
    def lin(x, n):
        s = jnp.maximum(jnp.max(jnp.abs(x), -1, keepdims=True).astype(f32), 1e-6) / 127
        q = jnp.round(x.astype(f32) / s).astype(jnp.int8)
        y = lax.dot_general(q, p[n], (((1,), (1,)), ((), ())), preferred_element_type=i32)
        return (y.astype(f32) * s * p[n + 's']).astype(bf16)
    h = norm(x, p['n'])
    return x + lin(jax.nn.silu(lin(h, 'g')) * lin(h, 'u'), 'd')


emit('w8a8_gated', int8_layer, tree({'n': ((1024,), f32), 'g': ((2816, 1024), jnp.int8), 'gs': ((2816,), f32), 'u': ((2816, 1024), jnp.int8), 'us': ((2816,), f32), 'd': ((1024, 2816), jnp.int8), 'ds': ((1024,), f32)}), S((64, 1024), bf16), platform='cuda')


def awq(x, w, z, s):
    K, N = w.shape[0] * 8, w.shape[1]
    shift = jnp.arange(8, dtype=u32) * 4
    nib = lambda a: ((a[:, None] >> shift[:, None]) & 15).reshape(-1, N).astype(bf16)
    full = (nib(w).reshape(-1, 128, N) - nib(z)[:K // 128, None]) * s[:, None]
    return x @ full.reshape(K, N)


emit('w4_packed_words', awq, S((8, 4096), bf16), S((512, 4096), u32), S((4, 4096), u32), S((32, 4096), bf16), platform='cuda')


def fp8_linear(x, w, sx, sw, b):
    q = jnp.clip(x.astype(f32) / sx, -448, 448).astype(jnp.float8_e4m3fn)
    y = lax.dot_general(q, w, (((1,), (0,)), ((), ())), preferred_element_type=f32) * (sx * sw)
    return jax.nn.relu(y.astype(bf16) + b), jnp.max(jnp.abs(x)).astype(f32)


emit('fp8_scaled_linear', fp8_linear, S((1024, 2048), bf16), S((2048, 4096), jnp.float8_e4m3fn), S((), f32), S((), f32), S((4096,), bf16), platform='cuda')


def fp8_train(x, w, g, scales):
    cut = lambda a, s, t, lim: jnp.clip(a.astype(f32) * s, -lim, lim).astype(t)
    qx, qw = cut(x, scales[0], jnp.float8_e4m3fn, 448), cut(w, scales[1], jnp.float8_e4m3fn, 448)
    qg = cut(g, scales[2], jnp.float8_e5m2, 57344)
    dot = lambda a, b, ca, cb, s: (lax.dot_general(a, b, (((ca,), (cb,)), ((), ())), preferred_element_type=f32) * s).astype(bf16)
    y = dot(qx, qw, 1, 0, 1 / (scales[0] * scales[1]))
    dx = dot(qg, qw, 1, 1, 1 / (scales[2] * scales[1]))
    dw = dot(qx, qg, 0, 0, 1 / (scales[0] * scales[2]))
    amax = jnp.stack([jnp.max(jnp.abs(a)).astype(f32) for a in (x, w, g)])
    return y, dx, dw, jnp.where(amax > 0, jnp.array([448.0, 448.0, 57344.0]) / amax, scales)


emit('fp8_delayed_scaling', fp8_train, S((1024, 2048), bf16), S((2048, 2048), bf16), S((1024, 2048), bf16), S((3,), f32), platform='cuda')


# An encoder's memory read by a decoder, with masks of both, for several beams, caches reordered by the beams that live on.
def cross(p, x, mem, mask, ck, beam, pos):
    ck = jnp.take_along_axis(ck.reshape(4, 5, *ck.shape[1:]), beam[:, :, None, None, None], 1).reshape(ck.shape)
    h = norm(x, p['n'], p['m'])
    k = (h @ p['sk']).reshape(-1, 8, 64)
    ck = ck.at[:, :, pos].set(k)
    q = (h @ p['sq']).reshape(-1, 8, 1, 64)
    s = jnp.where(jnp.arange(ck.shape[2]) <= pos, (q @ ck.transpose(0, 1, 3, 2))[:, :, 0], -1e9)
    x = x + (jax.nn.softmax(s)[:, :, None] @ ck)[:, :, 0].reshape(-1, 512) @ p['so']
    q = (norm(x, p['n'], p['m']) @ p['cq']).reshape(4, 5, 8, 64)
    mk, mv = [(mem @ p[n]).reshape(4, -1, 8, 64) for n in ('ck', 'cv')]
    s = jnp.einsum('bnhd,bthd->bnht', q, mk) / 8 + jnp.where(mask, 0, -1e9)[:, None, None]
    return x + jnp.einsum('bnht,bthd->bnhd', jax.nn.softmax(s), mv).reshape(-1, 512) @ p['co'], ck


emit('beam_cross_attention', cross, tree({**{n: ((512, 512), f32) for n in ('sk', 'sq', 'so', 'cq', 'ck', 'cv', 'co')}, 'n': ((512,), f32), 'm': ((512,), f32)}),
     S((20, 512), f32), S((4, 200, 512), f32), S((4, 200), bool_), S((20, 8, 128, 64), f32), S((4, 5), i32), S((), i32), platform='cuda')
