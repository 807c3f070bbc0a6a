"""Training steps with what people put around a loss: optimizers of several kinds, masks for weight decay, mixed precision, loss scaling, gradients gathered over microbatches."""
import functools

import jax
import jax.numpy as jnp
from jax import lax

from .common import S, bf16, bool_, emit, f16, f32, i32, norm, rope, tree, u32


# A decoder with dropout by hardware's generator, smoothed labels, clipped gradients, AdamW on float32 masters without decay of vectors.
def keyed_dropout(key, x, rate):
    keep = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(keep, x / jnp.asarray(1 - rate, x.dtype), jnp.zeros((), x.dtype))


def smoothed_loss(logits, labels, eps, ignore=-100):
    logp = jax.nn.log_softmax(logits.astype(f32))
    hot = jax.nn.one_hot(labels, logits.shape[-1]) * (1 - eps) + eps / logits.shape[-1]
    mask = labels != ignore
    return -jnp.sum(jnp.sum(hot * logp, -1) * mask) / jnp.maximum(mask.sum(), 1)


def decoder_layer(p, x, key):
    B, T, D = x.shape
    k1, k2 = jax.random.split(key)
    h = norm(x, p['n1'], p['m1'])
    q, k, v = jnp.split(h @ p['qkv'] + p['bqkv'], 3, -1)
    q, k, v = [y.reshape(B, T, 12, D // 12).transpose(0, 2, 1, 3) for y in (q, k, v)]
    s = jnp.einsum('bhqd,bhkd->bhqk', q, k, preferred_element_type=f32) * (D // 12) ** -0.5
    s = jnp.where(jnp.tril(jnp.ones((T, T), bool)), s, jnp.finfo(f32).min)
    a = jnp.einsum('bhqk,bhkd->bqhd', jax.nn.softmax(s).astype(x.dtype), v).reshape(B, T, D)
    x = x + keyed_dropout(k1, a @ p['o'] + p['bo'], 0.1)
    h = norm(x, p['n2'], p['m2'])
    return x + keyed_dropout(k2, jax.nn.gelu(h @ p['w1'] + p['c1']) @ p['w2'] + p['c2'], 0.1)


def decoder_loss(master, ids, labels, key):
    p = jax.tree.map(lambda x: x.astype(bf16), master)
    x = p['e'][ids] + p['pos']
    for n, k in enumerate(jax.random.split(key, 2)):
        x = decoder_layer(p[f'l{n}'], x, k)
    return smoothed_loss(norm(x, master['n']) @ p['e'].T, labels, 0.1)


def clipped(g, limit=1.0):
    n = jnp.sqrt(sum(jnp.sum(jnp.square(x.astype(f32))) for x in jax.tree.leaves(g)))
    return jax.tree.map(lambda x: jnp.where(n < limit, x, x / n * limit), g), n


def adamw_masked(p, m, v, g, t):
    lr = 6e-4 * jnp.minimum(t / 2000, 0.5 * (1 + jnp.cos(jnp.pi * t / 100000)))
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    v = jax.tree.map(lambda v, g: 0.95 * v + 0.05 * g ** 2, v, g)

    def one(p, m, v):
        u = (m / (1 - 0.9 ** t)) / (jnp.sqrt(v / (1 - 0.95 ** t)) + 1e-8)
        return p - lr * (u + 0.1 * p if p.ndim > 1 else u)
    return jax.tree.map(one, p, m, v), m, v


def decoder_step(p, m, v, t, ids, labels, seed, impl):
    key = jax.random.wrap_key_data(seed, impl=impl)
    l, g = jax.value_and_grad(decoder_loss)(p, ids, labels, key)
    g, n = clipped(g)
    return (*adamw_masked(p, m, v, g, t.astype(f32)), t + 1, l, n)


W = 768
DECODER_LAYER = {'qkv': ((W, 3 * W), f32), 'bqkv': ((3 * W,), f32), 'o': ((W, W), f32), 'bo': ((W,), f32), 'n1': ((W,), f32), 'm1': ((W,), f32),
                 'n2': ((W,), f32), 'm2': ((W,), f32), 'w1': ((W, 4 * W), f32), 'c1': ((4 * W,), f32), 'w2': ((4 * W, W), f32), 'c2': ((W,), f32)}
DECODER = {'e': S((16384, W), f32), 'pos': S((256, W), f32), 'n': S((W,), f32), 'l0': tree(DECODER_LAYER), 'l1': tree(DECODER_LAYER)}
emit('gpt2_adamw_threefry', functools.partial(decoder_step, impl='threefry2x32'), DECODER, DECODER, DECODER, S((), i32), S((8, 256), i32), S((8, 256), i32), S((2,), u32), platform='cuda')
emit('gpt2_adamw_rbg', functools.partial(decoder_step, impl='rbg'), DECODER, DECODER, DECODER, S((), i32), S((8, 256), i32), S((8, 256), i32), S((4,), u32), platform='cuda')


# Half precision with a loss scale that goes up and down, LAMB, on an MLP-Mixer.
def mixer(p, x):
    B, H, _, _ = x.shape
    x = x.reshape(B, H // 16, 16, H // 16, 16, 3).transpose(0, 1, 3, 2, 4, 5).reshape(B, -1, 768) @ p['patch']
    for n in range(2):
        q = p[f'b{n}']
        y = norm(x, q['n1'], q['m1']).transpose(0, 2, 1)
        x = x + (jax.nn.gelu(y @ q['t1']) @ q['t2']).transpose(0, 2, 1)
        x = x + jax.nn.gelu(norm(x, q['n2'], q['m2']) @ q['c1']) @ q['c2']
    return x.mean(1) @ p['head']


def lamb_step(p, m, v, scale, good, x, y):
    def loss(p):
        out = mixer(jax.tree.map(lambda a: a.astype(f16), p), x.astype(f16)).astype(f32)
        return jnp.mean(jax.nn.logsumexp(out, -1) - jnp.take_along_axis(out, y[:, None], 1)[:, 0]) * scale
    l, g = jax.value_and_grad(loss)(p)
    g = jax.tree.map(lambda g: g / scale, g)
    finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(x)) for x in jax.tree.leaves(g)]))
    m2 = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    v2 = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)

    def one(p, m, v):
        u = m / (jnp.sqrt(v) + 1e-6) + 0.01 * p
        np_, nu = jnp.linalg.norm(p), jnp.linalg.norm(u)
        return p - 1e-3 * jnp.where((np_ > 0) & (nu > 0), np_ / nu, 1.0) * u
    take = lambda new, old: jax.tree.map(lambda a, b: jnp.where(finite, a, b), new, old)
    p2 = jax.tree.map(one, p, m2, v2)
    scale2 = jnp.where(finite, jnp.where(good == 1999, scale * 2, scale), scale / 2)
    return take(p2, p), take(m2, m), take(v2, v), scale2, jnp.where(finite, (good + 1) % 2000, 0), l / scale


MIX = {'t1': ((196, 384), f32), 't2': ((384, 196), f32), 'c1': ((512, 2048), f32), 'c2': ((2048, 512), f32), **{n: ((512,), f32) for n in ('n1', 'm1', 'n2', 'm2')}}
MIXER = {'patch': S((768, 512), f32), 'head': S((512, 1000), f32), 'b0': tree(MIX), 'b1': tree(MIX)}
emit('mixer_lamb_f16', lamb_step, MIXER, MIXER, MIXER, S((), f32), S((), i32), S((32, 224, 224, 3), f32), S((32,), i32), platform='cuda')


# Adafactor (rows and columns of the second moment) on layers in a scan, of whose products alone the backward pass keeps the results.
def gated(p, ids):
    x = p['e'][ids].astype(bf16)

    @functools.partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable)
    def layer(x, w):
        B, T, D = x.shape
        w = jax.tree.map(lambda a: a.astype(bf16), w)
        h = norm(x, w['n1'])
        q, k, v = [(h @ w[n]).reshape(B, T, 16, 64) for n in 'qkv']
        pos = jnp.arange(T)[None]
        q, k = rope(q, pos), rope(k, pos)
        s = jnp.einsum('bqhd,bkhd->bhqk', q, k).astype(f32) / 8
        s = 50 * jnp.tanh(s / 50)
        near = (pos[0][:, None] >= pos[0]) & (pos[0][:, None] - pos[0] < 64)
        s = jnp.where(near, s, -1e30)
        x = x + jnp.einsum('bhqk,bkhd->bqhd', jax.nn.softmax(s).astype(bf16), v).reshape(B, T, D) @ w['o']
        h = norm(x, w['n2'])
        return x + (jax.nn.gelu(h @ w['w1']) * (h @ w['w3'])) @ w['w2'], None
    x, _ = lax.scan(layer, x, p['layers'])
    return jnp.einsum('btd,vd->btv', x, p['e'].astype(bf16), preferred_element_type=f32)


def adafactor_step(p, r, c, t, ids):
    def loss(p):
        out = gated(p, ids[:, :-1])
        z = jax.nn.logsumexp(out, -1)
        return jnp.mean(z - jnp.take_along_axis(out, ids[:, 1:, None], -1)[..., 0]) + 1e-4 * jnp.mean(z ** 2)
    l, g = jax.value_and_grad(loss)(p)
    b = 1 - t ** -0.8

    def one(p, r, c, g):
        s = g * g + 1e-30
        if p.ndim < 2:
            r = b * r + (1 - b) * s
            u = g * lax.rsqrt(r)
        else:
            r, c = b * r + (1 - b) * s.mean(-1), b * c + (1 - b) * s.mean(-2)
            u = g * lax.rsqrt(r / r.mean(-1, keepdims=True))[..., None] * lax.rsqrt(c)[..., None, :]
        u = u / jnp.maximum(1.0, jnp.sqrt(jnp.mean(u * u)))
        return p - 0.01 * jnp.maximum(1e-3, jnp.sqrt(jnp.mean(p * p))) * u, r, c
    out = jax.tree.map(one, p, r, c, g)
    return [jax.tree.map(lambda o: o[n], out, is_leaf=lambda o: isinstance(o, tuple)) for n in range(3)], l


GATED = {'q': (1024, 1024), 'k': (1024, 1024), 'v': (1024, 1024), 'o': (1024, 1024), 'w1': (1024, 2816), 'w3': (1024, 2816), 'w2': (2816, 1024), 'n1': (1024,), 'n2': (1024,)}
STACKED = {'e': S((8192, 1024), f32), 'layers': {k: S((6, *s), f32) for k, s in GATED.items()}}
ROWS = {'e': S((8192,), f32), 'layers': {k: S((6, *s[:-1]) if len(s) > 1 else (6,), f32) for k, s in GATED.items()}}
COLUMNS = {'e': S((1024,), f32), 'layers': {k: S((6, *s[:-2], s[-1]) if len(s) > 1 else (s[-1],), f32) for k, s in GATED.items()}}
emit('gemma_adafactor_remat', adafactor_step, STACKED, ROWS, COLUMNS, S((), f32), S((4, 257), i32), platform='cuda')


# Lion with gradients summed over microbatches, a loss with a gradient of its own, a moving average of the weights.
@jax.custom_vjp
def chunked_loss(x, e, y):
    return chunked_forward(x, e, y)[0]


def chunked_forward(x, e, y):
    def one(c, part):
        xs, ys = part
        out = xs @ e.T
        z = jax.nn.logsumexp(out, -1)
        d = jax.nn.softmax(out) - jax.nn.one_hot(ys, e.shape[0])
        return (c[0] + jnp.sum(z - jnp.take_along_axis(out, ys[:, None], 1)[:, 0]), c[1] + d.T @ xs), d @ e
    (l, de), dx = lax.scan(one, (0.0, jnp.zeros_like(e)), (x.reshape(4, -1, x.shape[-1]), y.reshape(4, -1)))
    return l, (dx.reshape(x.shape), de)


chunked_loss.defvjp(chunked_forward, lambda kept, g: (g * kept[0], g * kept[1], None))


def lion_step(p, m, ema, x, y):
    def loss(p, x, y):
        h = x
        for n in range(3):
            h = h + jax.nn.silu(norm(h, p['n'][n]) @ p['a'][n]) @ p['b'][n]
        return chunked_loss(h, p['e'], y) / y.size

    def micro(c, xy):
        l, g = jax.value_and_grad(loss)(p, *xy)
        return jax.tree.map(jnp.add, c, (l, g)), None
    zero = (0.0, jax.tree.map(jnp.zeros_like, p))
    (l, g), _ = lax.scan(micro, zero, (x, y))
    step = jax.tree.map(lambda p, m, g: p - 1e-4 * (jnp.sign(0.9 * m + 0.1 * g / x.shape[0]) + 0.1 * p), p, m, g)
    return step, jax.tree.map(lambda m, g: 0.99 * m + 0.01 * g / x.shape[0], m, g), jax.tree.map(lambda e, p: e + 0.001 * (p - e), ema, step), l


LION = {'n': [S((512,), f32)] * 3, 'a': [S((512, 1024), f32)] * 3, 'b': [S((1024, 512), f32)] * 3, 'e': S((4000, 512), f32)}
emit('lion_microbatches', lion_step, LION, LION, LION, S((4, 512, 512), f32), S((4, 512), i32), platform='cuda')


# Policy optimization: advantages backwards in time, clipped ratios, entropy, several epochs over a permutation.
def ppo(p, obs, act, old, rew, done, key):
    def net(p, x):
        h = jnp.tanh(jnp.tanh(x @ p['a'] + p['ab']) @ p['b'] + p['bb'])
        return h @ p['pi'], (h @ p['v'])[..., 0]
    _, val = net(p, obs)

    def back(c, t):
        r, d, v, nxt = t
        c = r + 0.99 * nxt * (1 - d) - v + 0.99 * 0.95 * (1 - d) * c
        return c, c
    nxt = jnp.concatenate([val[1:], jnp.zeros_like(val[:1])])
    _, adv = lax.scan(back, jnp.zeros(obs.shape[1]), (rew, done, val, nxt), reverse=True)
    data = jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), (obs, act, old, adv, adv + val))

    def loss(p, b):
        o, a, l0, ad, ret = b
        logits, v = net(p, o)
        lp = jax.nn.log_softmax(logits)
        ratio = jnp.exp(jnp.take_along_axis(lp, a[:, None], 1)[:, 0] - l0)
        ad = (ad - ad.mean()) / (ad.std() + 1e-8)
        pg = jnp.maximum(-ad * ratio, -ad * jnp.clip(ratio, 0.8, 1.2)).mean()
        return pg + 0.5 * jnp.square(v - ret).mean() + 0.01 * jnp.sum(jnp.exp(lp) * lp, -1).mean()

    def epoch(p, key):
        order = jax.random.permutation(key, data[0].shape[0])
        shuffled = jax.tree.map(lambda a: a[order].reshape(4, -1, *a.shape[1:]), data)
        return lax.scan(lambda p, b: (lambda lg: (jax.tree.map(lambda p, g: p - 3e-4 * g, p, lg[1]), lg[0]))(jax.value_and_grad(loss)(p, b)), p, shuffled)
    return lax.scan(epoch, p, jax.random.split(jax.random.wrap_key_data(key), 3))


PPO = tree({'a': ((48, 256), f32), 'ab': ((256,), f32), 'b': ((256, 256), f32), 'bb': ((256,), f32), 'pi': ((256, 12), f32), 'v': ((256, 1), f32)})
TIME = (128, 64)
emit('ppo_update', ppo, PPO, S((*TIME, 48), f32), S(TIME, i32), S(TIME, f32), S(TIME, f32), S(TIME, f32), S((2,), u32))


# Contrastive pairs with a temperature, symmetric; distillation with a teacher that no gradient reaches.
def clip_step(p, img, txt, pad):
    def towers(p):
        a = jax.nn.relu(img @ p['i1']) @ p['i2']
        t = jnp.where(pad[..., None], p['e'][txt], 0).sum(1) / jnp.maximum(pad.sum(1, keepdims=True), 1) @ p['t2']
        return [x / (jnp.linalg.norm(x, axis=-1, keepdims=True) + 1e-6) for x in (a, t)]

    def loss(p):
        a, t = towers(p)
        s = a @ t.T * jnp.exp(p['scale'])
        teach = lax.stop_gradient(jax.nn.softmax(s.T / 2))
        n = jnp.arange(s.shape[0])
        hard = -(jax.nn.log_softmax(s)[n, n].mean() + jax.nn.log_softmax(s, 0)[n, n].mean()) / 2
        return hard + 0.1 * jnp.sum(teach * (jnp.log(teach + 1e-9) - jax.nn.log_softmax(s))) / s.shape[0]
    return jax.value_and_grad(loss)(p)


emit('clip_contrastive', clip_step, tree({'i1': ((1024, 2048), f32), 'i2': ((2048, 512), f32), 'e': ((30000, 256), f32), 't2': ((256, 512), f32), 'scale': ((), f32)}),
     S((512, 1024), f32), S((512, 32), i32), S((512, 32), bool_), platform='cuda')
