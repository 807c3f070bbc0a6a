"""Convolutional nets: with batch norm, in half precision, residual, dilated, transposed; radiance fields, image losses."""
import jax
import jax.numpy as jnp
from jax import lax

from .common import S, attn, bf16, conv, emit, f32, i32, tree


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

emit('depthwise', lambda x, w, q: jax.nn.relu6(lax.conv_general_dilated(lax.conv_general_dilated(x, w, (1, 1), 'SAME', dimension_numbers=('NHWC', 'HWIO', 'NHWC'), feature_group_count=32), q, (1, 1), 'SAME', dimension_numbers=('NHWC', 'HWIO', 'NHWC'))), S((8, 56, 56, 32), f32), S((3, 3, 1, 32), f32), S((1, 1, 32, 64), f32))

emit('wavenet', lambda x, ws: sum((jnp.tanh(lax.conv_general_dilated(x, w, (1,), [(2 ** i, 0)], rhs_dilation=(2 ** i,), dimension_numbers=('NWC', 'WIO', 'NWC'))) for i, w in enumerate(ws))), S((4, 512, 32), f32), [S((2, 32, 32), f32)] * 4)
emit('conv3d_train', lambda w, x: jax.grad(lambda w: jnp.sum(lax.conv_general_dilated(x, w, (1, 1, 1), 'SAME', dimension_numbers=('NDHWC', 'DHWIO', 'NDHWC')) ** 2))(w), S((3, 3, 3, 8, 16), f32), S((2, 8, 16, 16, 8), f32))
emit('convt', lambda x, w: lax.conv_transpose(x, w, (2, 2), 'SAME'), S((4, 16, 16, 64), f32), S((4, 4, 64, 32), f32))


# Convolutional nets with batch norm: training in half precision, squeeze and excite, transposed and dilated ones.
def bn_and_stats(x, g, b):
    x32 = x.astype(f32)
    mu, var = x32.mean((0, 1, 2)), x32.var((0, 1, 2))
    return ((x32 - mu) * lax.rsqrt(var + 1e-5) * g + b).astype(x.dtype), (mu, var)


def resnet_loss(p, x, y, half):
    x = x.astype(half)
    stats = []

    def cbr(x, n, s=1, relu=True):
        y, st = bn_and_stats(conv(x, p[n].astype(half), s), p[n + 'g'], p[n + 'b'])
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


def ssim(a, b):
    k = jnp.ones((11, 11, 1, 1)) / 121
    f = lambda x: lax.conv_general_dilated(x, k, (1, 1), 'VALID', dimension_numbers=('NHWC', 'HWIO', 'NHWC'))
    ma, mb = f(a), f(b)
    va, vb, c = f(a * a) - ma * ma, f(b * b) - mb * mb, f(a * b) - ma * mb
    return jnp.mean((2 * ma * mb + 1e-4) * (2 * c + 9e-4) / ((ma * ma + mb * mb + 1e-4) * (va + vb + 9e-4)))


emit('ssim_grad', jax.grad(ssim), S((4, 64, 64, 1), f32), S((4, 64, 64, 1), f32))
