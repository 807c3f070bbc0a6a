"""What is asked of models once they serve: caches updated row by row, latent heads, drafts that are verified, beams with lengths, eight-bit caches, selection of experts, encoders of sound."""
import jax
import jax.numpy as jnp
from jax import lax

from .common import S, bf16, bool_, emit, f32, i32, norm, rope, tree


# Grouped heads in partial rotary form; rows at places of their own in the cache (vmap'd updates), scan over layers.
def rows_put(c, x, pos):
    return jax.vmap(lambda c, x, p: lax.dynamic_update_slice(c, x, (p, 0, 0)))(c, x, pos)


def slots_decode(p, tok, ck, cv, pos):
    x = p['e'][tok]

    def layer(x, s):
        w, ck, cv = s
        h = norm(x, w['n1'])
        q = (h @ w['q'] + w['bq']).reshape(-1, 1, 16, 64)
        k, v = jnp.split((h @ w['kv']).reshape(-1, 1, 4, 128), 2, -1)
        q, k = [jnp.concatenate([rope(y[..., :32], pos[:, None]), y[..., 32:]], -1) for y in (q, k)]
        ck, cv = rows_put(ck, k, pos), rows_put(cv, v, pos)
        s = jnp.einsum('bgrd,bsgd->bgrs', q.reshape(-1, 4, 4, 64), ck, preferred_element_type=f32) / 8
        s = 30 * jnp.tanh(s / 30)
        s = jnp.where(jnp.arange(ck.shape[1]) <= pos[:, None, None, None], s, -2.0e38)
        o = jnp.einsum('bgrs,bsgd->bgrd', jax.nn.softmax(s, -1).astype(bf16), cv).reshape(-1, 1024)
        x = x + norm(o @ w['o'], w['n3'])
        h = norm(x, w['n2'])
        return x + (jax.nn.gelu(h @ w['g']) * (h @ w['u'])) @ w['d'], (ck, cv)
    x, (ck, cv) = lax.scan(layer, x, (p['l'], ck, cv))
    logits = (norm(x, p['n']) @ p['e'].T).astype(f32)
    return jnp.argmax(30 * jnp.tanh(logits / 30), -1), ck, cv


SLOTS = {'e': S((16000, 1024), bf16), 'n': S((1024,), f32), 'l': tree({
    'n1': ((6, 1024), f32), 'n2': ((6, 1024), f32), 'n3': ((6, 1024), f32), 'q': ((6, 1024, 1024), bf16), 'bq': ((6, 1024), bf16), 'kv': ((6, 1024, 512), bf16),
    'o': ((6, 1024, 1024), bf16), 'g': ((6, 1024, 2816), bf16), 'u': ((6, 1024, 2816), bf16), 'd': ((6, 2816, 1024), bf16)})}
emit('slots_softcap_decode', slots_decode, SLOTS, S((8,), i32), S((6, 8, 1024, 4, 64), bf16), S((6, 8, 1024, 4, 64), bf16), S((8,), i32), platform='cuda')


# Latent heads (MLA): what is cached is one narrow row for all heads; the query goes into its space.
def latent(p, x, cache, pos):
    B = x.shape[0]
    h = norm(x, p['n'])
    q = (norm(h @ p['qa'], p['qn']) @ p['qb']).reshape(B, 16, 96)
    qn, qr = q[..., :64], rope(q[:, None, :, 64:], jnp.full((B, 1), pos))[:, 0]
    kv = h @ p['kva']
    c = jnp.concatenate([norm(kv[:, :256], p['kn']), rope(kv[:, None, None, 256:], jnp.full((B, 1), pos))[:, 0, 0]], -1)
    cache = lax.dynamic_update_slice(cache, c[:, None], (0, pos, 0))
    s = jnp.einsum('bhd,hdc,btc->bht', qn, p['uk'], cache[..., :256]) + jnp.einsum('bhd,btd->bht', qr, cache[..., 256:])
    s = jnp.where(jnp.arange(cache.shape[1]) <= pos, s.astype(f32) * 96 ** -0.5, -jnp.inf)
    o = jnp.einsum('bht,btc->bhc', jax.nn.softmax(s, -1).astype(bf16), cache[..., :256])
    return x + jnp.einsum('bhc,hcd->bhd', o, p['uv']).reshape(B, 1024) @ p['o'], cache


emit('latent_attention_decode', latent, tree({'n': ((1024,), f32), 'qa': ((1024, 384), bf16), 'qn': ((384,), f32), 'qb': ((384, 1536), bf16), 'kva': ((1024, 288), bf16),
     'kn': ((256,), f32), 'uk': ((16, 64, 256), bf16), 'uv': ((16, 256, 64), bf16), 'o': ((1024, 1024), bf16)}), S((16, 1024), bf16), S((16, 2048, 288), bf16), S((), i32), platform='cuda')


# A draft of four tokens by a small model in a loop, one pass of the larger over all of them, the longest prefix that both say.
def small(p, tok, state):
    h = jnp.tanh(p['e'][tok] @ p['w'] + state @ p['u'])
    return h @ p['o'], h


def draft_verify(p, big, tok, state, ctx):
    def one(s, _):
        tok, state = s
        logits, state = small(p, tok, state)
        tok = jnp.argmax(logits, -1).astype(i32)
        return (tok, state), (tok, state)
    _, (toks, states) = lax.scan(one, (tok, state), None, length=4)
    toks = jnp.swapaxes(toks, 0, 1)
    x = big['e'][jnp.concatenate([tok[:, None], toks], 1)]
    s = jnp.einsum('btd,bcd->btc', x @ big['q'], ctx @ big['k']) / 16
    x = x + jnp.einsum('btc,bcd->btd', jax.nn.softmax(s, -1), ctx) @ big['v']
    said = jnp.argmax(x @ big['o'], -1).astype(i32)
    ok = jnp.cumprod((said[:, :4] == toks).astype(i32), 1)
    n = ok.sum(1)
    nxt = jnp.take_along_axis(said, n[:, None], 1)[:, 0]
    state = jnp.take_along_axis(states, jnp.clip(n - 1, 0)[None, :, None], 0)[0]
    return jnp.where(jnp.arange(4) < n[:, None], toks, -1), nxt, n, state


emit('draft_loop_verify', draft_verify, tree({'e': ((8000, 128), f32), 'w': ((128, 256), f32), 'u': ((256, 256), f32), 'o': ((256, 8000), f32)}),
     tree({'e': ((8000, 256), f32), 'q': ((256, 256), f32), 'k': ((256, 256), f32), 'v': ((256, 256), f32), 'o': ((256, 8000), f32)}), S((8,), i32), S((8, 256), f32), S((8, 512, 256), f32), platform='cuda')


# Beams with length penalty, ended beams kept apart, caches put in order of their beams' parents.
def beam_step(live, scores, done, done_scores, cache, logits, i):
    B, K, V = logits.shape
    logp = jax.nn.log_softmax(logits.astype(f32)) + scores[..., None]
    top, at = lax.top_k(logp.reshape(B, K * V), 2 * K)
    parent, word = at // V, (at % V).astype(i32)
    seqs = lax.dynamic_update_slice(jnp.take_along_axis(live, parent[..., None], 1), word[..., None], (0, 0, i))
    ended = word == 1
    pen = ((5.0 + i) / 6.0) ** 0.6
    live_top, pick = lax.top_k(jnp.where(ended, -1e7, top), K)
    new_live = jnp.take_along_axis(seqs, pick[..., None], 1)
    order = jnp.take_along_axis(parent, pick, 1)
    cache = jax.tree.map(lambda c: jnp.take_along_axis(c, order[:, :, None, None], 1), cache)
    every = jnp.concatenate([done, seqs], 1)
    every_scores = jnp.concatenate([done_scores, jnp.where(ended, top / pen, -1e7)], 1)
    best, which = lax.top_k(every_scores, K)
    return new_live, live_top, jnp.take_along_axis(every, which[..., None], 1), best, cache, jnp.any(live_top[:, 0] / pen > best[:, -1])


emit('beam_step_caches', beam_step, S((8, 4, 64), i32), S((8, 4), f32), S((8, 4, 64), i32), S((8, 4), f32), [S((8, 4, 64, 128), bf16)] * 2, S((8, 4, 8000), bf16), S((), i32), platform='cuda')


# Keys and values in eight bits with a scale for each row; weights in f8 with scales by blocks.
def q8(x):
    s = jnp.max(jnp.abs(x), -1, keepdims=True) / 127 + 1e-8
    return jnp.round(x / s).astype(jnp.int8), s


def int8_cache(x, w, sw, ck, sk, cv, sv, pos):
    blocks = (w.astype(f32).reshape(8, 128, 12, 128) * sw[:, None, :, None]).reshape(1024, 1536).astype(bf16)
    qkv = (x @ blocks).astype(f32)
    q, k, v = qkv[:, :1024].reshape(-1, 4, 4, 64), qkv[:, 1024:1280].reshape(-1, 4, 64), qkv[:, 1280:].reshape(-1, 4, 64)
    k8, ks = q8(k)
    v8, vs = q8(v)
    ck, cv = [lax.dynamic_update_slice(c, y[:, None], (0, pos, 0, 0)) for c, y in ((ck, k8), (cv, v8))]
    sk, sv = [lax.dynamic_update_slice(c, y[:, None], (0, pos, 0, 0)) for c, y in ((sk, ks), (sv, vs))]
    s = jnp.einsum('bgrd,bsgd->bgrs', q.astype(bf16), ck.astype(bf16), preferred_element_type=f32) * jnp.moveaxis(sk[..., 0], 1, 2)[:, :, None]
    s = jnp.where(jnp.arange(ck.shape[1]) <= pos, s / 8, -1e30)
    a = jax.nn.softmax(s, -1) * jnp.moveaxis(sv[..., 0], 1, 2)[:, :, None]
    return jnp.einsum('bgrs,bsgd->bgrd', a.astype(bf16), cv.astype(bf16)).reshape(-1, 1024), ck, sk, cv, sv


CACHE8, SCALES8 = S((8, 512, 4, 64), jnp.int8), S((8, 512, 4, 1), f32)
emit('int8_cache_f8_weights', int8_cache, S((8, 1024), bf16), S((1024, 1536), jnp.float8_e4m3fn), S((8, 12), f32), CACHE8, SCALES8, CACHE8, SCALES8, S((), i32), platform='cuda')


# The two best of eight experts a token, weights gathered by token, shared expert, sigmoid router with a bias for the choice alone.
def picked(p, x):
    g = jax.nn.sigmoid(x.astype(f32) @ p['r'])
    _, at = lax.top_k(g + p['bias'], 2)
    w = jnp.take_along_axis(g, at, 1)
    w = w / w.sum(-1, keepdims=True)
    h = jax.nn.silu(jnp.einsum('td,tkdf->tkf', x, p['g'][at])) * jnp.einsum('td,tkdf->tkf', x, p['u'][at])
    y = jnp.einsum('tkf,tkfd,tk->td', h, p['d'][at], w.astype(bf16))
    return y + (jax.nn.silu(x @ p['sg']) * (x @ p['su'])) @ p['sd']


emit('experts_gathered_decode', picked, tree({'r': ((512, 8), f32), 'bias': ((8,), f32), 'g': ((8, 512, 512), bf16), 'u': ((8, 512, 512), bf16), 'd': ((8, 512, 512), bf16),
     'sg': ((512, 512), bf16), 'su': ((512, 512), bf16), 'sd': ((512, 512), bf16)}), S((4, 512), bf16), platform='cuda')


# Mamba2: chunks by matrices (SSD), a causal depthwise convolution, gated norm; and its step by step form.
def segsum(a):
    T = a.shape[-1]
    c = jnp.cumsum(a, -1)
    return jnp.where(jnp.tril(jnp.ones((T, T), bool)), c[..., :, None] - c[..., None, :], -jnp.inf)


def mamba2(p, x):
    B, T, D = x.shape
    z, u, dt = jnp.split(x @ p['i'], [512, 512 + 512 + 128], -1)
    u = jax.nn.silu(lax.conv_general_dilated(u, p['c'], (1,), [(3, 0)], dimension_numbers=('NWC', 'WIO', 'NWC'), feature_group_count=640) + p['cb'])
    xs, b, c = jnp.split(u, [512, 576], -1)
    dt = jax.nn.softplus(dt.astype(f32) + p['dtb'])
    xs = xs.reshape(B, T // 64, 64, 8, 64)
    b, c = [y.reshape(B, T // 64, 64, 64) for y in (b, c)]
    a = (dt * -jnp.exp(p['a'])).reshape(B, T // 64, 64, 8).transpose(0, 3, 1, 2)
    xs = xs * dt.reshape(B, T // 64, 64, 8)[..., None].astype(x.dtype)
    cs = jnp.cumsum(a, -1)
    inside = jnp.einsum('bcln,bcsn,bhcls,bcshp->bclhp', c, b, jnp.exp(segsum(a)).astype(x.dtype), xs)
    states = jnp.einsum('bcln,bhcl,bclhp->bchpn', b, jnp.exp(cs[..., -1:] - cs).astype(x.dtype), xs)
    states = jnp.concatenate([jnp.zeros_like(states[:, :1]), states], 1)
    decay = jnp.exp(segsum(jnp.pad(cs[..., -1], ((0, 0), (0, 0), (1, 0))))).astype(x.dtype)
    states = jnp.einsum('bhzc,bchpn->bzhpn', decay, states)[:, :-1]
    y = inside + jnp.einsum('bcln,bchpn,bhcl->bclhp', c, states, jnp.exp(cs).astype(x.dtype))
    return norm(y.reshape(B, T, 512) * jax.nn.silu(z), p['n']) @ p['o']


MAMBA2 = tree({'i': ((256, 1160), f32), 'c': ((4, 1, 640), f32), 'cb': ((640,), f32), 'dtb': ((8,), f32), 'a': ((8,), f32), 'n': ((512,), f32), 'o': ((512, 256), f32)})
emit('mamba2_chunks', mamba2, MAMBA2, S((4, 256, 256), f32), platform='cuda')
emit('mamba2_chunks_train', lambda p, x, y: jax.value_and_grad(lambda p: jnp.mean((mamba2(p, x) - y) ** 2))(p), MAMBA2, S((4, 256, 256), f32), S((4, 256, 256), f32), platform='cuda')


# Conformer: halves of a perceptron, relative shift of scores, gated convolution with batch statistics, quantiser by nearest codes behind it.
def conformer(p, x, lens):
    B, T, D = x.shape
    m = jnp.arange(T) < lens[:, None]
    x = x + 0.5 * jax.nn.silu(norm(x, p['n1']) @ p['f1']) @ p['f2']
    h = norm(x, p['n2'])
    q, k, v = jnp.split((h @ p['qkv']).reshape(B, T, 4, 192), 3, -1)
    rel = (p['pos'] @ p['wr']).reshape(2 * T - 1, 4, 64)
    bd = jnp.einsum('bthd,rhd->bhtr', q + p['vb'], rel)
    bd = jnp.pad(bd, ((0, 0),) * 3 + ((1, 0),)).reshape(B, 4, 2 * T, T)[:, :, 1:].reshape(B, 4, T, 2 * T - 1)[..., :T]
    s = (jnp.einsum('bthd,bshd->bhts', q + p['ub'], k) + bd) / 8
    a = jax.nn.softmax(jnp.where(m[:, None, None], s, -1e9), -1)
    x = x + jnp.einsum('bhts,bshd->bthd', a, v).reshape(B, T, D) @ p['o']
    g, u = jnp.split(norm(x, p['n3']) @ p['p1'], 2, -1)
    h = jnp.where(m[..., None], g * jax.nn.sigmoid(u), 0)
    h = lax.conv_general_dilated(h, p['dw'], (1,), 'SAME', dimension_numbers=('NWC', 'WIO', 'NWC'), feature_group_count=D)
    w = m[..., None] / jnp.maximum(m.sum(), 1)
    mu = jnp.sum(h * w, (0, 1))
    h = (h - mu) * lax.rsqrt(jnp.sum((h - mu) ** 2 * w, (0, 1)) + 1e-3)
    x = x + jax.nn.silu(h) @ p['p2']
    d = jnp.sum(x ** 2, -1, keepdims=True) - 2 * x @ p['codes'].T + jnp.sum(p['codes'] ** 2, -1)
    code = jnp.argmin(d, -1)
    return x, code, jnp.mean((x - lax.stop_gradient(p['codes'][code])) ** 2)


CONFORMER = tree({'n1': ((256,), f32), 'n2': ((256,), f32), 'n3': ((256,), f32), 'f1': ((256, 1024), f32), 'f2': ((1024, 256), f32), 'qkv': ((256, 768), f32), 'pos': ((399, 256), f32),
                  'wr': ((256, 256), f32), 'vb': ((4, 64), f32), 'ub': ((4, 64), f32), 'o': ((256, 256), f32), 'p1': ((256, 512), f32), 'dw': ((31, 1, 256), f32), 'p2': ((256, 256), f32), 'codes': ((512, 256), f32)})
emit('conformer_encoder', conformer, CONFORMER, S((8, 200, 256), f32), S((8,), i32), platform='cuda')
emit('conformer_train', lambda p, x, n, y: jax.value_and_grad(lambda p: (lambda r: jnp.mean((r[0] - y) ** 2) + r[2])(conformer(p, x, n)))(p), CONFORMER, S((8, 200, 256), f32), S((8,), i32), S((8, 200, 256), f32), platform='cuda')
