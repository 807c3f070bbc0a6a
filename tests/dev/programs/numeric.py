"""Sorting, FFT, linear algebra, random numbers, weights of few bits, statistics, simulations."""
import jax
import jax.numpy as jnp
from jax import lax

from .common import S, bf16, emit, f32, i32


emit('sort_topk', lambda x, k: (jnp.sort(x, -1), jnp.argsort(k), lax.top_k(x, 8), jnp.percentile(x, 75.0), jnp.cumsum(x, -1), jnp.searchsorted(k, k[:100])), S((64, 1024), f32), S((5000,), f32))
emit('fft_filter', lambda x, h: jnp.fft.irfft(jnp.fft.rfft(x) * jnp.fft.rfft(h)), S((16, 4096), f32), S((4096,), f32))
emit('linalg', lambda a, b: (jnp.linalg.cholesky(a @ jnp.swapaxes(a, -1, -2) + jnp.eye(32)), jax.scipy.linalg.solve_triangular(jnp.tril(a), b, lower=True), jnp.linalg.det(a)), S((4, 32, 32), f32), S((4, 32, 8), f32))
emit('random', lambda k: (jax.random.normal(jax.random.wrap_key_data(k), (1000, 7)), jax.random.uniform(jax.random.wrap_key_data(k), (333,)), jax.random.permutation(jax.random.wrap_key_data(k), 100), jax.random.categorical(jax.random.wrap_key_data(k), jnp.zeros((8, 10)))), S((2,), jnp.uint32))
emit('int8_dense', lambda x, w, s: lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=i32).astype(f32) * s, S((128, 512), jnp.int8), S((512, 256), jnp.int8), S((256,), f32))

emit('ode_while', lambda y, t: lax.while_loop(lambda s: (s[1] < t) & (jnp.max(jnp.abs(s[0])) < 1000.0), lambda s: (s[0] + s[2] * jnp.sin(s[0]) @ jnp.ones((16, 16)), s[1] + s[2], jnp.where(jnp.mean(s[0]) > 0, s[2] * 0.9, s[2] * 1.1)), (y, 0.0, 0.01)), S((8, 16), f32), S((), f32))
emit('cond_vmap', jax.vmap(lambda x, i: lax.switch(i, [jnp.sin, jnp.cos, lambda x: x * x], x)), S((32, 100), f32), S((32,), i32))

emit('complex_sig', lambda z: (jnp.abs(z), jnp.angle(z), (z @ z.conj().T).real), S((128, 64), jnp.complex64))
emit('nms', lambda b, s: lax.fori_loop(0, 32, lambda i, k: k & ~((jnp.minimum(b[:, 2], b[i, 2]) - jnp.maximum(b[:, 0], b[i, 0]) > 0.5) & (jnp.arange(100) > i) & k[i]), s > 0.1), S((100, 4), f32), S((100,), f32))


def quantised(x, w, sw):
    sx = jnp.max(jnp.abs(x), -1, keepdims=True) / 127
    q = jnp.clip(jnp.round(x / sx), -127, 127).astype(jnp.int8)
    y = lax.dot_general(q, w, (((1,), (0,)), ((), ())), preferred_element_type=i32).astype(f32) * sx * sw
    return jax.nn.relu(y)


emit('dynamic_int8', quantised, S((256, 512), f32), S((512, 256), jnp.int8), S((256,), f32))
emit('fp8_dense', lambda x, w, s: jax.nn.gelu((x.astype(jnp.float8_e4m3fn).astype(bf16) @ w.astype(bf16)) * s), S((256, 512), bf16), S((512, 256), jnp.float8_e4m3fn), S((), bf16))
emit('int4_weights', lambda x, w, s: x @ (w.astype(bf16).reshape(4, 128, 256) * s[:, None]).reshape(512, 256), S((64, 512), bf16), S((512, 256), jnp.int4), S((4, 256), bf16))


def heat(u, n):
    def step(_, u):
        p = jnp.pad(u, 1, mode='edge')
        return u + 0.1 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u)
    return lax.fori_loop(0, n, step, u)


emit('heat', lambda u: heat(u, 100), S((256, 256), f32))
emit('kmeans', lambda x, c: lax.fori_loop(0, 10, lambda _, c: (lambda a: (a.T @ x) / jnp.maximum(a.sum(0), 1)[:, None])(jax.nn.one_hot(jnp.argmin(((x[:, None] - c) ** 2).sum(-1), -1), 16)), c), S((2000, 8), f32), S((16, 8), f32))

emit('welford', lambda x: (x.mean((0, 2)), x.std((0, 2)), jnp.median(x, 1), jnp.corrcoef(x[0]), jnp.histogram(x[0, 0], 10)[0]), S((4, 32, 128), f32))
emit('losses', lambda l, y, w: (jax.nn.log_softmax(l, 0).sum(), jnp.sum(jnp.where(y > 0, jax.nn.softplus(-l), jax.nn.softplus(l)) * w), jnp.mean(jnp.abs(l - y)), jnp.max(l, axis=(0, 1)), jnp.sum(l * y, 0) / (jnp.linalg.norm(l, axis=0) * jnp.linalg.norm(y, axis=0))), S((64, 32, 10), f32), S((64, 32, 10), f32), S((32, 10), f32))
