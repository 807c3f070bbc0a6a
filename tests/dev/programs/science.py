"""Numbers beside nets: spectra, factors, solvers with early ends, particles, lattices, sorting and counting, wide types."""
import jax
import jax.numpy as jnp
from jax import lax

from .common import S, bf16, emit, f32, i32, tree, u32

f64, c64 = jnp.float64, jnp.complex64


# A Fourier operator over two dimensions: complex products by mode, with its gradient.
def fno(p, x):
    h = x @ p['in']
    for n in range(2):
        f = jnp.fft.rfft2(h, axes=(1, 2))
        out = jnp.zeros_like(f)
        for m, sl in enumerate((slice(0, 12), slice(-12, None))):
            w = lax.complex(p['re'][n, m], p['im'][n, m])
            out = out.at[:, sl, :12].set(jnp.einsum('bxyi,xyio->bxyo', f[:, sl, :12], w))
        h = jax.nn.gelu(jnp.fft.irfft2(out, h.shape[1:3], axes=(1, 2)) + h @ p['w'][n])
    return h @ p['out']


FNO = tree({'in': ((3, 32), f32), 're': ((2, 2, 12, 12, 32, 32), f32), 'im': ((2, 2, 12, 12, 32, 32), f32), 'w': ((2, 32, 32), f32), 'out': ((32, 1), f32)})
emit('fno2d_train', lambda p, x, y: jax.value_and_grad(lambda p: jnp.mean((fno(p, x) - y) ** 2))(p), FNO, S((8, 64, 64, 3), f32), S((8, 64, 64, 1), f32), platform='cuda')


# A Gaussian process: a kernel's matrix, its factor, what it explains, with gradients; predictions.
def gp_nll(theta, x, y):
    d = jnp.square(x[:, None] - x).sum(-1)
    k = jnp.exp(theta[0]) * jnp.exp(-d / jnp.exp(theta[1])) + jnp.exp(theta[2]) * jnp.eye(x.shape[0])
    l = jnp.linalg.cholesky(k)
    a = jax.scipy.linalg.cho_solve((l, True), y)
    return 0.5 * y @ a + jnp.log(jnp.diag(l)).sum()


emit('gaussian_process_grad', jax.value_and_grad(gp_nll), S((3,), f32), S((300, 4), f32), S((300,), f32), platform='cuda')
emit('spectral_linalg', lambda a, b: (jnp.linalg.qr(a), jnp.linalg.eigh(a.swapaxes(-1, -2) @ a), jnp.linalg.svd(b, full_matrices=False), jnp.linalg.solve(a[:, :48] @ a[:, :48].swapaxes(-1, -2) + jnp.eye(48), b[:, :48])),
     S((4, 64, 48), f32), S((4, 64, 32), f32), platform='cuda')
emit('whitening_newton_schulz', lambda g: (lambda x: lax.fori_loop(0, 5, lambda _, x: 3.4445 * x + (-4.7750 * (x @ x.T) + 2.0315 * (x @ x.T) @ (x @ x.T)) @ x, x))((g / (jnp.linalg.norm(g) + 1e-7)).astype(bf16)), S((1024, 2048), f32), platform='cuda')


# Wide types: conjugate gradients until the residual is small; a Kalman filter; particles in a box with their forces' gradients.
def conjugate(a, b, tol):
    def one(s):
        x, r, p, rs, n = s
        ap = a @ p
        alpha = rs / (p @ ap)
        r2 = r - alpha * ap
        rs2 = r2 @ r2
        return x + alpha * p, r2, r2 + rs2 / rs * p, rs2, n + 1
    return lax.while_loop(lambda s: (s[3] > tol ** 2) & (s[4] < 500), one, (jnp.zeros_like(b), b, b, b @ b, 0))


emit('conjugate_gradients_f64', conjugate, S((1000, 1000), f64), S((1000,), f64), S((), f64), x64=True, platform='cuda')


def kalman(f, h, q, r, x, p, z):
    def one(c, z):
        x, p = c
        x, p = jnp.einsum('ij,bj->bi', f, x), f @ p @ f.T + q
        s = h @ p @ h.T + r
        k = jnp.swapaxes(jax.scipy.linalg.solve(s, h @ p, assume_a='pos'), -1, -2)
        d = z - jnp.einsum('ij,bj->bi', h, x)
        x = x + jnp.einsum('bij,bj->bi', k, d)
        p = (jnp.eye(6) - k @ h) @ p
        return (x, p), (x, -0.5 * (jnp.einsum('bi,bi->b', d, jnp.linalg.solve(s, d[..., None])[..., 0]) + jnp.linalg.slogdet(s)[1]))
    return lax.scan(one, (x, p), z)


emit('kalman_filter_f64', kalman, S((6, 6), f64), S((3, 6), f64), S((6, 6), f64), S((3, 3), f64), S((256, 6), f64), S((256, 6, 6), f64), S((100, 256, 3), f64), x64=True, platform='cuda')


def particles(x, v, box):
    def energy(x):
        d = x[:, None] - x
        d = d - box * jnp.round(d / box)
        r2 = jnp.square(d).sum(-1) + jnp.eye(x.shape[0]) * 1e9
        s = jnp.where(r2 < 6.25, 1 / r2, 0) ** 3
        return 2 * jnp.sum(s * s - s)

    def one(c, _):
        x, v, f = c
        v = v + 0.0005 * f
        x = (x + 0.001 * v) % box
        e, g = jax.value_and_grad(energy)(x)
        v = v - 0.0005 * g
        return (x, v, -g), (e, 0.5 * jnp.square(v).sum())
    return lax.scan(one, (x, v, -jax.grad(energy)(x)), None, length=50)


emit('lennard_jones_f64', particles, S((500, 3), f64), S((500, 3), f64), S((3,), f64), x64=True, platform='cuda')


# Lattices: Boltzmann by rolls, Poisson by two grids, a wave in complex numbers by split steps, the shallow water with upwind choices.
def boltzmann(f, wall):
    c = jnp.array([(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)])
    w = jnp.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)

    def one(_, f):
        rho = f.sum(0)
        u = jnp.einsum('qd,qxy->dxy', c.astype(f32), f) / rho
        cu = 3 * jnp.einsum('qd,dxy->qxy', c.astype(f32), u)
        eq = w[:, None, None] * rho * (1 + cu + 0.5 * cu ** 2 - 1.5 * jnp.square(u).sum(0))
        f = jnp.where(wall, f[jnp.array([0, 3, 4, 1, 2, 7, 8, 5, 6])], f - (f - eq) / 0.6)
        return jnp.stack([jnp.roll(f[n], (int(a), int(b)), (0, 1)) for n, (a, b) in enumerate([(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)])])
    return lax.fori_loop(0, 100, one, f)


emit('lattice_boltzmann', boltzmann, S((9, 200, 100), f32), S((200, 100), jnp.bool_), platform='cuda')


def two_grids(u, b):
    k = jnp.array([[0.0, 1, 0], [1, -4, 1], [0, 1, 0]])[:, :, None, None]
    lap = lambda u: lax.conv_general_dilated(u, k, (1, 1), 'SAME', dimension_numbers=('NHWC', 'HWIO', 'NHWC'))
    smooth = lambda u, b, n: lax.fori_loop(0, n, lambda _, u: u + 0.2 * (lap(u) - b), u)

    def cycle(s):
        u, n, _ = s
        u = smooth(u, b, 3)
        r = b - lap(u)
        rc = lax.reduce_window(r, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), 'VALID')
        e = smooth(jnp.zeros_like(rc), rc, 20)
        u = smooth(u + jax.image.resize(e, u.shape, 'bilinear'), b, 3)
        return u, n + 1, jnp.max(jnp.abs(b - lap(u)))
    return lax.while_loop(lambda s: (s[1] < 50) & (s[2] > 1e-4), cycle, (u, 0, jnp.float32(1)))


emit('multigrid_poisson', two_grids, S((1, 256, 256, 1), f32), S((1, 256, 256, 1), f32), platform='cuda')


def split_step(psi, pot, k2):
    half, kin = jnp.exp(-0.005j * pot), jnp.exp(-0.005j * k2)

    def one(psi, _):
        psi = half * jnp.fft.ifft2(kin * jnp.fft.fft2(half * psi))
        psi = psi / jnp.sqrt(jnp.square(jnp.abs(psi)).sum())
        return psi, jnp.vdot(psi, pot * psi).real
    return lax.scan(one, psi, None, length=100)


emit('schroedinger_split_step', split_step, S((128, 128), c64), S((128, 128), f32), S((128, 128), f32), platform='cuda')


def shallow(h, u, v):
    def flux(q, u):
        up = jnp.where(u > 0, q, jnp.roll(q, -1, 0))
        return u * up - jnp.roll(u * up, 1, 0)

    def one(c, _):
        h, u, v = c
        dh = flux(h, u) + flux(h.T, v.T).T
        h = h - 0.1 * dh
        gx, gy = jnp.gradient(h)
        lim = lambda a: jnp.sign(a) * jnp.minimum(jnp.abs(a), 1.0)
        u = (u - 0.1 * lim(gx) + 0.01 * v).at[0].set(0).at[-1].set(0)
        v = (v - 0.1 * lim(gy) - 0.01 * u).at[:, 0].set(0).at[:, -1].set(0)
        return (h, u, v), (h.mean(), jnp.abs(u).max())
    return lax.scan(one, (h, u, v), None, length=200)


emit('shallow_water', shallow, *[S((256, 192), f32)] * 3, platform='cuda')


# Sorting by several keys, groups, counts, ranks, quantiles by bins; runs of equal values; windows that slide.
def tables(key, sub, val, q):
    order = jnp.lexsort((sub, key))
    k, s, v = lax.sort((key, sub, val), num_keys=2)
    new = jnp.concatenate([jnp.ones(1, bool), k[1:] != k[:-1]])
    group = jnp.cumsum(new) - 1
    sums = jax.ops.segment_sum(v, group, 512)
    most = lax.cummax(v)
    edges = jnp.linspace(-3, 3, 65)
    hist = jnp.bincount(jnp.clip(jnp.searchsorted(edges, val), 0, 64), length=65)
    rank = jnp.argsort(jnp.argsort(val))
    return order, sums, most, hist, rank, jnp.quantile(val, q), lax.cumlogsumexp(v), jnp.unique(key, size=256, fill_value=-1), lax.cumprod(1 + 0.001 * v, reverse=True)


emit('tables_sort_group', tables, S((10000,), i32), S((10000,), i32), S((10000,), f32), S((5,), f32), platform='cuda')


def rolling(x):
    w = lambda f, i, n: lax.reduce_window(x, i, f, (1, n), (1, 1), [(0, 0), (n - 1, 0)])
    mean = w(lax.add, 0.0, 20) / 20
    sd = jnp.sqrt(jnp.maximum(lax.reduce_window(x * x, 0.0, lax.add, (1, 20), (1, 1), [(0, 0), (19, 0)]) / 20 - mean ** 2, 0))
    ema = lax.associative_scan(lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (jnp.full_like(x, 0.9), 0.1 * x), axis=1)[1]
    r = jnp.diff(jnp.log(jnp.abs(x) + 1), axis=1)
    down = x / lax.cummax(x, 1) - 1
    return (x - mean) / (sd + 1e-6), ema, down.min(1), jnp.cov(r), w(lax.max, -jnp.inf, 50) - w(lax.min, jnp.inf, 50), jnp.median(r, 1), jnp.argmax(down, 1)


emit('rolling_statistics', rolling, S((64, 2000), f32), platform='cuda')


# Draws: Hamiltonian steps that are taken or not, a particle filter's resampling, options' prices by paths; types of keys as jax makes them on CPU.
def hmc(x, key, data):
    logp = lambda x: -0.5 * jnp.square(x).sum(-1) - jnp.sum(jnp.logaddexp(0.0, -(x @ data.T)), -1)
    grad = jax.grad(lambda x: logp(x).sum())

    def one(c, key):
        x, ok = c
        k1, k2 = jax.random.split(key)
        p = jax.random.normal(k1, x.shape)

        def leap(_, s):
            q, p = s
            p = p + 0.005 * grad(q)
            q = q + 0.01 * p
            return q, p + 0.005 * grad(q)
        q, r = lax.fori_loop(0, 10, leap, (x, p))
        d = logp(q) - logp(x) + 0.5 * (jnp.square(p) - jnp.square(r)).sum(-1)
        take = jnp.log(jax.random.uniform(k2, d.shape)) < d
        return (jnp.where(take[:, None], q, x), ok + take), x[0]
    return lax.scan(one, (x, jnp.zeros(x.shape[0], i32)), jax.random.split(jax.random.wrap_key_data(key), 30))


emit('hmc_chains', hmc, S((64, 16), f32), S((2,), u32), S((200, 16), f32))


def resample(x, obs, key):
    def one(c, t):
        x, key = c
        key, a, b = jax.random.split(key, 3)
        x = 0.5 * x + 25 * x / (1 + x * x) + jax.random.normal(a, x.shape)
        w = jax.nn.softmax(-0.5 * jnp.square(t - x * x / 20))
        u = (jnp.arange(x.size) + jax.random.uniform(b)) / x.size
        x = x[jnp.searchsorted(jnp.cumsum(w), u)]
        return (x, key), (jnp.sum(w * x), 1 / jnp.sum(w * w))
    return lax.scan(one, (x, jax.random.wrap_key_data(key)), obs)


emit('particle_filter', resample, S((4096,), f32), S((60,), f32), S((2,), u32))


def option(s0, key):
    def price(s0):
        z = jax.random.normal(jax.random.wrap_key_data(key, impl='rbg'), (64, 20000))
        path = s0 * jnp.exp(jnp.cumsum(0.02 * z - 0.0002, 0))
        hit = jnp.any(path > 1.5 * s0, 0)
        return jnp.mean(jnp.where(hit, 0, jnp.maximum(path.mean(0) - s0, 0)))
    return price(s0), jax.grad(price)(s0), jax.jvp(jax.grad(price), (s0,), (1.0,))[1]


emit('barrier_option_rbg', option, S((), f32), S((4,), u32), platform='cuda')


# Branches inside of loops, by an index from data; dates and words in integers; strings' distances by rows of a table.
def automaton(x, code):
    def one(c, i):
        x, acc = c
        x = lax.switch(i, [lambda x: jnp.tanh(x @ x.T) @ x / 64, lambda x: jnp.roll(x, 1, 0), lambda x: x - x.mean(0), lambda x: lax.cond(x.sum() > 0, lambda x: x * 0.5, lambda x: x + 1, x)], x)
        return (x, acc + x.sum()), x[0, 0]
    return lax.scan(one, (x, 0.0), code)


emit('interpreter_switch', automaton, S((128, 64), f32), S((40,), i32), platform='cuda')


def edit_distance(a, b, lens):
    def row(prev, t):
        ca, n = t
        sub = prev[:, :-1] + (b != ca[:, None])
        best = jnp.minimum(sub, prev[:, 1:] + 1)
        first = jnp.full((b.shape[0], 1), n)
        x = jnp.concatenate([first, best], 1) - jnp.arange(b.shape[1] + 1)
        cur = lax.cummin(x, 1) + jnp.arange(b.shape[1] + 1)
        return cur, cur
    start = jnp.broadcast_to(jnp.arange(b.shape[1] + 1), (b.shape[0], b.shape[1] + 1))
    _, rows = lax.scan(row, start, (a.T, jnp.arange(1, a.shape[1] + 1)))
    return rows[lens[:, 0] - 1, jnp.arange(b.shape[0]), lens[:, 1]]


emit('edit_distance_rows', edit_distance, S((64, 50), i32), S((64, 60), i32), S((64, 2), i32), platform='cuda')


def hashes(x, s):
    def rotl(v, n):
        return (v << n) | (v >> (32 - n))
    h = jnp.broadcast_to(s, x.shape[:1])
    for n in range(x.shape[1]):
        k = rotl(x[:, n] * u32(0xcc9e2d51), 15) * u32(0x1b873593)
        h = rotl(h ^ k, 13) * 5 + u32(0xe6546b64)
    h = (h ^ (h >> 16)) * u32(0x85ebca6b)
    bits = lax.population_count(h) + lax.clz(h)
    day = (h % 100000).astype(i32)
    y = (day * 400 + 591) // 146097
    return h, bits, y, jnp.bitwise_xor.reduce(x, 1), (lax.bitcast_convert_type(x, f32) > 0).sum(1), jnp.unpackbits((h & 255).astype(jnp.uint8))
emit('murmur_bits', hashes, S((4096, 8), u32), S((), u32), platform='cuda')
