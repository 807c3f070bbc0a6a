"""Physics, geometry, signals and pictures: vmap'd systems, ray marching, splats, spectra, graphs by segments, detectors, latent pictures, sums along a row."""
import jax
import jax.numpy as jnp
from jax import lax

from .common import S, bf16, conv, emit, f16, f32, i32, ln, norm, tree


# A pendulum on a cart, Runge-Kutta in a scan, vmap over starts, gradient of a controller through it.
def cartpole(p, s0):
    def f(s, u):
        x, th, v, w = s
        a = (u + 0.05 * w * w * jnp.sin(th)) / 1.1
        wd = (9.8 * jnp.sin(th) - jnp.cos(th) * a) / (0.5 * (4 / 3 - 0.1 * jnp.cos(th) ** 2 / 1.1))
        return jnp.stack([v, w, a - 0.05 * wd * jnp.cos(th) / 1.1, wd])

    def step(s, _):
        u = 10 * jnp.tanh(jnp.tanh(s @ p['a'] + p['b']) @ p['c'])[0]
        k1 = f(s, u)
        k2 = f(s + 0.01 * k1, u)
        k3 = f(s + 0.01 * k2, u)
        k4 = f(s + 0.02 * k3, u)
        s = s + 0.02 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return s, s[1] ** 2 + 0.1 * s[0] ** 2 + 0.01 * u * u
    return jnp.mean(jax.vmap(lambda s: lax.scan(step, s, None, length=50)[1])(s0))


emit('cartpole_control_grad', jax.value_and_grad(cartpole), tree({'a': ((4, 32), f32), 'b': ((32,), f32), 'c': ((32, 1), f32)}), S((256, 4), f32), platform='cuda')


# Graphs by segments: softmax over a node's edges, largest and mean message, pooling by graph, gradient.
def segments(p, x, src, dst, graph, y):
    for n in range(2):
        w = p[f'l{n}']
        h = x @ w['w']
        e = jax.nn.leaky_relu((h @ w['s'])[src] + (h @ w['d'])[dst], 0.2)
        top = jax.ops.segment_max(e, dst, 500)
        e = jnp.exp(e - lax.stop_gradient(jnp.where(jnp.isfinite(top), top, 0))[dst])
        a = e / (jax.ops.segment_sum(e, dst, 500)[dst] + 1e-9)
        m = h[src].reshape(-1, 4, 16) * a[..., None]
        agg = jax.ops.segment_sum(m, dst, 500).reshape(500, 64)
        big = jax.ops.segment_max(h[src], dst, 500)
        x = jax.nn.elu(agg + jnp.where(jnp.isfinite(big), big, 0))
    pooled = jax.ops.segment_sum(x, graph, 16) / jnp.maximum(jax.ops.segment_sum(jnp.ones(500), graph, 16), 1)[:, None]
    return jnp.mean((pooled @ p['o'] - y) ** 2)


SEGL = tree({'w': ((64, 64), f32), 's': ((64, 4), f32), 'd': ((64, 4), f32)})
emit('graph_segments_train', jax.value_and_grad(segments), {'l0': SEGL, 'l1': SEGL, 'o': S((64, 1), f32)}, S((500, 64), f32), S((4000,), i32), S((4000,), i32), S((500,), i32), S((16, 1), f32), platform='cuda')


# Gaussian splats: covariances from quaternions, projection, sorted by depth, blended front to back in a scan over chunks.
def splats(p, cam, pix):
    q = p['q'] / jnp.linalg.norm(p['q'], axis=-1, keepdims=True)
    w, x, y, z = jnp.moveaxis(q, -1, 0)
    R = jnp.stack([jnp.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], -1),
                   jnp.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], -1),
                   jnp.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], -1)], -2)
    M = R * jnp.exp(p['s'])[:, None, :]
    sigma = jnp.einsum('nij,nkj->nik', M, M)
    c = p['x'] @ cam[:, :3].T + cam[:, 3]
    iz = 1 / jnp.maximum(c[:, 2], 0.1)
    J = jnp.zeros((c.shape[0], 2, 3)).at[:, 0, 0].set(iz).at[:, 1, 1].set(iz).at[:, :, 2].set(-c[:, :2] * iz[:, None] ** 2)
    T = J @ cam[:, :3]
    s2 = T @ sigma @ jnp.swapaxes(T, 1, 2) + 0.01 * jnp.eye(2)
    det = s2[:, 0, 0] * s2[:, 1, 1] - s2[:, 0, 1] ** 2
    inv = jnp.stack([s2[:, 1, 1], -s2[:, 0, 1], s2[:, 0, 0]], -1) / det[:, None]
    order = jnp.argsort(c[:, 2])
    mean, inv, rgb, o = [a[order].reshape(8, 64, -1) for a in (c[:, :2] * iz[:, None], inv, jax.nn.sigmoid(p['c']), jax.nn.sigmoid(p['o'])[:, None])]

    def chunk(s, a):
        left, out = s
        m, i, c, o = a
        d = pix[:, None] - m[None]
        g = jnp.exp(-0.5 * (i[:, 0] * d[..., 0] ** 2 + 2 * i[:, 1] * d[..., 0] * d[..., 1] + i[:, 2] * d[..., 1] ** 2))
        al = jnp.minimum(g * o[:, 0], 0.99)
        tr = jnp.cumprod(1 - al, -1)
        wgt = left[:, None] * al * jnp.concatenate([jnp.ones_like(tr[:, :1]), tr[:, :-1]], -1)
        return (left * tr[:, -1], out + wgt @ c), None
    return lax.scan(chunk, (jnp.ones(pix.shape[0]), jnp.zeros((pix.shape[0], 3))), (mean, inv, rgb, o))[0][1]


emit('splats_train', lambda p, cam, pix, y: jax.value_and_grad(lambda p: jnp.mean(jnp.abs(splats(p, cam, pix) - y)))(p),
     tree({'x': ((512, 3), f32), 'q': ((512, 4), f32), 's': ((512, 3), f32), 'c': ((512, 3), f32), 'o': ((512,), f32)}), S((3, 4), f32), S((1024, 2), f32), S((1024, 3), f32), platform='cuda')


# A detector's end: three scales decoded over grids, the best 300, suppression in a while loop by class offset, counts by class.
def yolo_end(a, b, c):
    every = []
    for x, stride in ((a, 8), (b, 16), (c, 32)):
        B, H, W, _ = x.shape
        x = x.astype(f32).reshape(B, H, W, 3, 25)
        grid = jnp.stack(jnp.meshgrid(jnp.arange(W), jnp.arange(H)), -1)[:, :, None].astype(f32)
        xy = (jax.nn.sigmoid(x[..., :2]) * 2 - 0.5 + grid) * stride
        wh = (jax.nn.sigmoid(x[..., 2:4]) * 2) ** 2 * jnp.array([[10., 13.], [16., 30.], [33., 23.]]) * (stride / 8)
        p = jax.nn.sigmoid(x[..., 4:5]) * jax.nn.sigmoid(x[..., 5:])
        every.append(jnp.concatenate([xy - wh / 2, xy + wh / 2, p], -1).reshape(B, -1, 24))
    every = jnp.concatenate(every, 1)
    score, cls = jnp.max(every[..., 4:], -1), jnp.argmax(every[..., 4:], -1)
    top, at = lax.top_k(score, 300)
    box = jnp.take_along_axis(every[..., :4], at[..., None], 1)
    cls = jnp.take_along_axis(cls, at, 1)
    moved = box + cls[..., None] * 4096.0
    area = jnp.prod(moved[..., 2:] - moved[..., :2], -1)
    lo, hi = [f(moved[:, :, None], moved[:, None]) for f in (jnp.maximum, jnp.minimum)]
    inter = jnp.prod(jnp.clip(hi[..., 2:] - lo[..., :2], 0), -1)
    iou = inter / (area[:, :, None] + area[:, None] - inter + 1e-9)
    above = (iou > 0.45) & (jnp.arange(300)[:, None] > jnp.arange(300))

    def again(s):
        keep, _, n = s
        new = ~jnp.any(above & keep[:, None], -1)
        return new, jnp.any(new != keep), n + 1
    keep, _, n = lax.while_loop(lambda s: s[1] & (s[2] < 50), again, (jnp.ones_like(top, bool), True, 0))
    keep = keep & (top > 0.25)
    return box, jnp.where(keep, top, 0), cls, jnp.zeros((20,), i32).at[cls.reshape(-1)].add(keep.reshape(-1).astype(i32)), n


emit('yolo_decode_nms', yolo_end, S((2, 40, 40, 75), f16), S((2, 20, 20, 75), f16), S((2, 10, 10, 75), f16), platform='cuda')


# A step of latent diffusion: group norm, time by sines, cross attention to words, guidance, DDIM; bf16 throughout.
def gn(x, g, b):
    B, H, W, C = x.shape
    y = x.astype(f32).reshape(B, H * W, 16, C // 16)
    mu = y.mean((1, 3), keepdims=True)
    y = (y - mu) * lax.rsqrt(y.var((1, 3), keepdims=True) + 1e-5)
    return (y.reshape(x.shape) * g + b).astype(x.dtype)


def res_time(p, x, t):
    h = conv(jax.nn.silu(gn(x, p['g1'], p['b1'])), p['c1']) + (jax.nn.silu(t) @ p['t'])[:, None, None]
    h = conv(jax.nn.silu(gn(h, p['g2'], p['b2'])), p['c2'])
    return h + (x if 'x' not in p else conv(x, p['x']))


def words_block(p, x, ctx):
    B, H, W, C = x.shape
    h = gn(x, p['g'], p['b']).reshape(B, H * W, C)
    for q, kv in (('q1', h), ('q2', ctx)):
        n = norm(h, p[q + 'n'])
        kv = n if kv is h else kv
        qh = (n @ p[q]).reshape(B, -1, 4, C // 4)
        k, v = [y.reshape(B, -1, 4, C // 4) for y in jnp.split(kv @ p[q + 'kv'], 2, -1)]
        s = jnp.einsum('bqhd,bkhd->bhqk', qh, k) * jnp.asarray((C // 4) ** -0.5, x.dtype)
        h = h + jnp.einsum('bhqk,bkhd->bqhd', jax.nn.softmax(s.astype(f32), -1).astype(x.dtype), v).reshape(B, -1, C) @ p[q + 'o']
    a, g = jnp.split(norm(h, p['fn']) @ p['f1'], 2, -1)
    return x + (h + (a * jax.nn.gelu(g)) @ p['f2']).reshape(x.shape)


def latent_unet(p, x, t, ctx):
    w = t[:, None] * jnp.exp(-jnp.arange(64) * (jnp.log(10000.0) / 64))
    t = jax.nn.silu(jnp.concatenate([jnp.cos(w), jnp.sin(w)], -1).astype(bf16) @ p['t1']) @ p['t2']
    a = words_block(p['w0'], res_time(p['r0'], conv(x, p['in']), t), ctx)
    b = words_block(p['w1'], res_time(p['r1'], conv(a, p['down'], 2), t), ctx)
    up = conv(jnp.repeat(jnp.repeat(b, 2, 1), 2, 2), p['up'])
    y = res_time(p['r2'], jnp.concatenate([up, a], -1), t)
    return conv(jax.nn.silu(gn(y, p['g'], p['b'])), p['out'])


def ddim(p, x, t, ctx, a0, a1, guide):
    e = latent_unet(p, jnp.concatenate([x, x]), jnp.full((2 * x.shape[0],), t), ctx).astype(f32)
    e0, e1 = jnp.split(e, 2)
    e = e0 + guide * (e1 - e0)
    x0 = (x.astype(f32) - jnp.sqrt(1 - a0) * e) / jnp.sqrt(a0)
    return (jnp.sqrt(a1) * x0 + jnp.sqrt(1 - a1) * e).astype(bf16)


def res_spec(i, o):
    return tree({'g1': ((i,), f32), 'b1': ((i,), f32), 'c1': ((3, 3, i, o), bf16), 't': ((256, o), bf16), 'g2': ((o,), f32), 'b2': ((o,), f32), 'c2': ((3, 3, o, o), bf16),
                 **({'x': ((1, 1, i, o), bf16)} if i != o else {})})


def words_spec(c):
    return tree({'g': ((c,), f32), 'b': ((c,), f32), 'q1n': ((c,), f32), 'q2n': ((c,), f32), 'fn': ((c,), f32), 'q1': ((c, c), bf16), 'q2': ((c, c), bf16), 'q1kv': ((c, 2 * c), bf16),
                 'q2kv': ((256, 2 * c), bf16), 'q1o': ((c, c), bf16), 'q2o': ((c, c), bf16), 'f1': ((c, 8 * c), bf16), 'f2': ((4 * c, c), bf16)})


UNET = {'t1': S((128, 256), bf16), 't2': S((256, 256), bf16), 'in': S((3, 3, 4, 128), bf16), 'r0': res_spec(128, 128), 'w0': words_spec(128), 'down': S((3, 3, 128, 256), bf16),
        'r1': res_spec(256, 256), 'w1': words_spec(256), 'up': S((3, 3, 256, 128), bf16), 'r2': res_spec(256, 128), 'g': S((128,), f32), 'b': S((128,), f32), 'out': S((3, 3, 128, 4), bf16)}
emit('latent_diffusion_step', ddim, UNET, S((2, 32, 32, 4), bf16), S((), f32), S((4, 77, 256), bf16), S((), f32), S((), f32), S((), f32), platform='cuda')
emit('latent_diffusion_train', lambda p, x, t, c, e: jax.value_and_grad(lambda p: jnp.mean((latent_unet(p, x, t, c).astype(f32) - e) ** 2))(p),
     UNET, S((4, 32, 32, 4), bf16), S((4,), f32), S((4, 77, 256), bf16), S((4, 32, 32, 4), f32), platform='cuda')


# Pictures by codes: strided convolutions, the nearest code with a straight-through gradient, transposed convolutions, codes kept as moving means.
def vq_loss(p, codes, x):
    z = conv(jax.nn.relu(conv(x, p['e1'], 2)), p['e2'], 2)
    flat = z.reshape(-1, 64)
    d = jnp.sum(flat ** 2, 1, keepdims=True) - 2 * flat @ codes.T + jnp.sum(codes ** 2, 1)
    at = jnp.argmin(d, 1)
    q = codes[at].reshape(z.shape)
    loss = 0.25 * jnp.mean((z - lax.stop_gradient(q)) ** 2)
    q = z + lax.stop_gradient(q - z)
    y = lax.conv_transpose(jax.nn.relu(lax.conv_transpose(q, p['d1'], (2, 2), 'SAME')), p['d2'], (2, 2), 'SAME')
    return jnp.mean((y - x) ** 2) + loss, (at, flat)


def vq_step(p, codes, n, s, x):
    (l, (at, flat)), g = jax.value_and_grad(vq_loss, has_aux=True)(p, codes, x)
    hot = jax.nn.one_hot(at, 512)
    n = 0.99 * n + 0.01 * hot.sum(0)
    s = 0.99 * s + 0.01 * hot.T @ flat
    use = hot.mean(0)
    return jax.tree.map(lambda p, g: p - 1e-3 * g, p, g), s / (n + 1e-5)[:, None], n, s, l, jnp.exp(-jnp.sum(use * jnp.log(use + 1e-10)))


emit('vq_pictures_train', vq_step, tree({'e1': ((4, 4, 3, 64), f32), 'e2': ((4, 4, 64, 64), f32), 'd1': ((4, 4, 64, 64), f32), 'd2': ((4, 4, 64, 3), f32)}),
     S((512, 64), f32), S((512,), f32), S((512, 64), f32), S((16, 64, 64, 3), f32), platform='cuda')


# Sound by spectra: frames, window, FFT, mel, a mask, magnitude loss at three sizes and its gradient.
def frames(x, n, h):
    at = jnp.arange((x.shape[-1] - n) // h + 1)[:, None] * h + jnp.arange(n)
    return x[:, at] * jnp.hanning(n)


def spectra_loss(p, x, y):
    s = jnp.fft.rfft(frames(x, 512, 128))
    m = jax.nn.sigmoid(jnp.tanh(jnp.log1p(jnp.abs(s)) @ p['a'] + p['b']) @ p['c'])
    t = jnp.fft.irfft(s * m)
    B, N, n = t.shape
    out = jnp.zeros((B, (N - 1) * 128 + n)).at[:, jnp.arange(N)[:, None] * 128 + jnp.arange(n)].add(t)
    total = jnp.mean(jnp.abs(out - y))
    for n in (256, 1024):
        a, b = [jnp.abs(jnp.fft.rfft(frames(v, n, n // 4))) + 1e-5 for v in (out, y)]
        total += jnp.linalg.norm(a - b) / jnp.linalg.norm(b) + jnp.mean(jnp.abs(jnp.log(a) - jnp.log(b)))
    return total


emit('sound_spectra_train', jax.value_and_grad(spectra_loss), tree({'a': ((257, 256), f32), 'b': ((256,), f32), 'c': ((256, 257), f32)}), S((4, 8192), f32), S((4, 8192), f32), platform='cuda')


# Sums along a row, in every manner: cumulative maxima, log-sum-exp, products, generalized advantages, quantiles, ranks, a sorted loss (Lovasz), soft ranks.
def row_sums(x, y, done, w):
    lse = lax.cumlogsumexp(x, axis=1)
    hi = lax.cummax(x, axis=1)
    adv = lax.associative_scan(lambda l, r: (l[0] * r[0], r[0] * l[1] + r[1]), (0.95 * (1 - done), x), axis=1, reverse=True)[1]
    err = jnp.abs(x - y)
    order = jnp.argsort(-err, axis=1)
    gt = jnp.take_along_axis((y > 0).astype(f32), order, 1)
    n = gt.sum(1, keepdims=True)
    jac = 1 - (n - jnp.cumsum(gt, 1)) / jnp.maximum(n + jnp.cumsum(1 - gt, 1), 1)
    jac = jnp.concatenate([jac[:, :1], jac[:, 1:] - jac[:, :-1]], 1)
    lovasz = jnp.mean(jnp.sum(jnp.take_along_axis(err, order, 1) * jac, 1))
    ranks = jnp.argsort(jnp.argsort(x, axis=1), axis=1)
    q = jnp.quantile(x, jnp.array([0.05, 0.5, 0.95]), axis=1)
    auc = jnp.mean((x[:, :, None] > x[:, None, :]) * ((y[:, :, None] > 0) & (y[:, None, :] <= 0)))
    return lse, hi, (adv - adv.mean()) / (adv.std() + 1e-8), lovasz, ranks, jnp.clip(x, q[0][:, None], q[2][:, None]), auc, jnp.average(x, axis=1, weights=w)


emit('row_sums_sorting', row_sums, S((32, 500), f32), S((32, 500), f32), S((32, 500), f32), S((32, 500), f32), platform='cuda')
emit('row_sums_grad', jax.grad(lambda x, y, d, w: sum(jnp.sum(v ** 2) for v in row_sums(x, y, d, w)[:4])), S((32, 500), f32), S((32, 500), f32), S((32, 500), f32), S((32, 500), f32), platform='cuda')


# Molecules: pairs by distance, radial functions, energy by a network, forces by its gradient, a loss on both (a gradient of a gradient).
def energy(p, z, r):
    d = r[:, None] - r[None]
    n = jnp.sqrt(jnp.sum(d ** 2, -1) + jnp.eye(r.shape[0]))
    cut = jnp.where(n < 5, 0.5 * (jnp.cos(jnp.pi * n / 5) + 1), 0) * (1 - jnp.eye(r.shape[0]))
    rbf = jnp.exp(-10 * (n[..., None] - jnp.linspace(0, 5, 32)) ** 2) * cut[..., None]
    h = p['e'][z]
    for k in ('w0', 'w1'):
        f = jax.nn.softplus(rbf @ p[k]['f1']) @ p[k]['f2']
        h = h + jnp.tanh(jnp.einsum('ijc,jc->ic', f, h @ p[k]['a'])) @ p[k]['b']
    return jnp.sum(jax.nn.silu(h @ p['o1']) @ p['o2'])


def force_loss(p, z, r, e, f):
    en, g = jax.vmap(jax.value_and_grad(energy, 2), (None, 0, 0))(p, z, r)
    return jnp.mean((en - e) ** 2) + 10 * jnp.mean((g + f) ** 2)


FORCE = tree({'f1': ((32, 64), f32), 'f2': ((64, 64), f32), 'a': ((64, 64), f32), 'b': ((64, 64), f32)})
emit('schnet_forces_train', jax.value_and_grad(force_loss), {'e': S((20, 64), f32), 'w0': FORCE, 'w1': FORCE, 'o1': S((64, 32), f32), 'o2': S((32, 1), f32)},
     S((8, 24), i32), S((8, 24, 3), f32), S((8,), f32), S((8, 24, 3), f32), platform='cuda')


# Tracks: an extended Kalman filter with Jacobians, a smoother going back, all f32, a batch by vmap.
def ekf(q, r, obs):
    def f(s):
        x, y, v, h = s
        return jnp.stack([x + v * jnp.cos(h), y + v * jnp.sin(h), 0.99 * v, h])

    def g(s):
        return jnp.stack([jnp.hypot(s[0], s[1]), jnp.arctan2(s[1], s[0])])

    def one(c, z):
        m, P = c
        F = jax.jacfwd(f)(m)
        m, P = f(m), F @ P @ F.T + q
        H = jax.jacfwd(g)(m)
        Sg = H @ P @ H.T + r
        K = jnp.linalg.solve(Sg, H @ P).T
        e = z - g(m)
        m, P = m + K @ e, (jnp.eye(4) - K @ H) @ P
        return (m, P), (m, P, e @ jnp.linalg.solve(Sg, e))

    def track(z):
        _, (m, P, nll) = lax.scan(one, (jnp.array([1., 1., 0.1, 0.]), jnp.eye(4)), z)
        return m, nll.sum()
    return jax.vmap(track)(obs)


emit('tracks_ekf', ekf, S((4, 4), f32), S((2, 2), f32), S((16, 40, 2), f32), platform='cuda')
