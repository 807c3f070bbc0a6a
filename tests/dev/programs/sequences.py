"""Loops over time: LSTM, GRU, state spaces, CTC, beams, hidden Markov models."""
import jax
import jax.numpy as jnp
from jax import lax

from .common import S, emit, f32, i32, tree


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

emit('hmm_vjp', lambda t, e, o: jax.value_and_grad(lambda t: jnp.sum(lax.scan(lambda a, i: (jax.nn.logsumexp(a[:, None] + t, 0) + e[:, i], None), jnp.zeros(12), o)[0]))(t), S((12, 12), f32), S((12, 20), f32), S((40,), i32))
