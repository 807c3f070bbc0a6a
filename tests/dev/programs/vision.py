"""Convolutional and attention nets over images and volumes: windows, groups, channels first, resizing, detection, diffusion."""
import jax
import jax.numpy as jnp
from jax import lax

from .common import S, bf16, conv, emit, f16, f32, i32, norm, tree, u32


def conv_nchw(x, w, s=1, pad='SAME', groups=1, dil=1):
    return lax.conv_general_dilated(x, w, (s, s), pad, dimension_numbers=('NCHW', 'OIHW', 'NCHW'), feature_group_count=groups, rhs_dilation=(dil, dil))


# Windows that shift, with a bias by relative place and a mask for what came round the edge; patches merged.
def swin_block(p, x, shift):
    B, H, _, C = x.shape
    h = norm(x, p['n1'], p['m1'])
    if shift:
        h = jnp.roll(h, (-3, -3), (1, 2))
    w = h.reshape(B, H // 7, 7, H // 7, 7, C).transpose(0, 1, 3, 2, 4, 5).reshape(-1, 49, C)
    q, k, v = (w @ p['qkv']).reshape(-1, 49, 3, C // 32, 32).transpose(2, 0, 3, 1, 4)
    at = jnp.stack(jnp.meshgrid(jnp.arange(7), jnp.arange(7), indexing='ij')).reshape(2, -1)
    rel = at[:, :, None] - at[:, None] + 6
    s = q @ k.transpose(0, 1, 3, 2) * 32 ** -0.5 + p['bias'][rel[0] * 13 + rel[1]].transpose(2, 0, 1)
    if shift:
        band = jnp.where(jnp.arange(H) < H - 7, 0, jnp.where(jnp.arange(H) < H - 3, 1, 2))
        ids = (band[:, None] * 3 + band).reshape(H // 7, 7, H // 7, 7).transpose(0, 2, 1, 3).reshape(-1, 49)
        mask = jnp.where(ids[:, None] != ids[:, :, None], -100.0, 0.0).astype(s.dtype)
        s = (s.reshape(B, -1, C // 32, 49, 49) + mask[:, None]).reshape(s.shape)
    a = (jax.nn.softmax(s) @ v).transpose(0, 2, 1, 3).reshape(-1, 49, C) @ p['o']
    a = a.reshape(B, H // 7, H // 7, 7, 7, C).transpose(0, 1, 3, 2, 4, 5).reshape(x.shape)
    x = x + (jnp.roll(a, (3, 3), (1, 2)) if shift else a)
    return x + jax.nn.gelu(norm(x, p['n2'], p['m2']) @ p['w1']) @ p['w2']


def swin(p, x):
    x = swin_block(p['b1'], swin_block(p['b0'], x, False), True)
    x = jnp.concatenate([x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)], -1)
    return norm(x, p['n'], p['m']) @ p['merge']


SWIN = {'qkv': ((96, 288), f32), 'o': ((96, 96), f32), 'bias': ((169, 3), f32), 'w1': ((96, 384), f32), 'w2': ((384, 96), f32), **{n: ((96,), f32) for n in ('n1', 'm1', 'n2', 'm2')}}
SWINS = {'b0': tree(SWIN), 'b1': tree(SWIN), 'n': S((384,), f32), 'm': S((384,), f32), 'merge': S((384, 192), f32)}
emit('swin_stage', swin, SWINS, S((8, 56, 56, 96), f32), platform='cuda')
emit('swin_stage_train_f16', lambda p, x: jax.value_and_grad(lambda p: jnp.mean(swin(jax.tree.map(lambda a: a.astype(f16), p), x).astype(f32) ** 2))(p), SWINS, S((8, 56, 56, 96), f16), platform='cuda')


# Channels first: depthwise of seven, layer norm over channels, a layer's scale, a path that is left out by chance.
def convnext(p, x, key):
    x = conv_nchw(x, p['stem'], 4, 'VALID')
    for n in range(2):
        q = p[f'b{n}']
        h = conv_nchw(x, q['d'], groups=96).transpose(0, 2, 3, 1)
        h = jax.nn.gelu(norm(h, q['n'], q['m']) @ q['w1'] + q['c1'])
        h = h * (q['g'] * (jnp.linalg.norm(h, axis=(1, 2), keepdims=True) / (jnp.linalg.norm(h, axis=(1, 2), keepdims=True).mean(-1, keepdims=True) + 1e-6)) + 1)
        h = (h @ q['w2'] * q['s']).transpose(0, 3, 1, 2)
        keep = jax.random.bernoulli(jax.random.fold_in(key, n), 0.9, (x.shape[0], 1, 1, 1))
        x = x + jnp.where(keep, h / 0.9, 0)
    return x.mean((2, 3)) @ p['head']


NEXT = {'d': ((96, 1, 7, 7), f32), 'n': ((96,), f32), 'm': ((96,), f32), 'w1': ((96, 384), f32), 'c1': ((384,), f32), 'g': ((384,), f32), 'w2': ((384, 96), f32), 's': ((96,), f32)}


def mixup_loss(p, x, y, lam, key):
    out = convnext(p, lam * x + (1 - lam) * x[::-1], jax.random.wrap_key_data(key))
    hot = jax.nn.one_hot(y, 100)
    return -jnp.mean(jnp.sum((lam * hot + (1 - lam) * hot[::-1]) * jax.nn.log_softmax(out), -1))


emit('convnext_train', jax.value_and_grad(mixup_loss), {'stem': S((96, 3, 4, 4), f32), 'b0': tree(NEXT), 'b1': tree(NEXT), 'head': S((96, 100), f32)},
     S((16, 3, 128, 128), f32), S((16,), i32), S((), f32), S((2,), u32))


# An autoencoder that draws: group norm, attention in the middle, up by nearest and by bilinear, a KL term.
def group_norm(x, g, b, n=32):
    B, H, W, C = x.shape
    y = x.reshape(B, H * W, n, C // n).astype(f32)
    mu, sq = y.mean((1, 3), keepdims=True), jnp.square(y).mean((1, 3), keepdims=True)
    return (((y - mu) * lax.rsqrt(sq - mu * mu + 1e-6)).reshape(x.shape) * g + b).astype(x.dtype)


def res(p, n, x):
    h = conv(jax.nn.silu(group_norm(x, p[n + 'g'], p[n + 'b'])), p[n + 'w'])
    return h if h.shape != x.shape else x + h


def vae_loss(p, x, key):
    h = conv(x.astype(bf16), p['in'].astype(bf16))
    p = {k: v.astype(bf16) if v.ndim > 1 else v for k, v in p.items()}
    h = res(p, 'a', h)
    h = conv(jnp.pad(h, ((0, 0), (0, 1), (0, 1), (0, 0))), p['down'], 2)[:, :-1, :-1] if h.shape[1] % 2 else conv(h, p['down'], 2)
    h = res(p, 'c', h)
    B, H, W, C = h.shape
    q, k, v = [(group_norm(h, p['cg'], p['cb']).reshape(B, H * W, C) @ p[n]) for n in 'qkv']
    h = h + (jax.nn.softmax(jnp.einsum('bqc,bkc->bqk', q, k).astype(f32) * C ** -0.5).astype(h.dtype) @ v).reshape(h.shape) @ p['o']
    mu, lv = jnp.split(conv(h, p['mid']).astype(f32), 2, -1)
    lv = jnp.clip(lv, -30, 20)
    z = mu + jnp.exp(0.5 * lv) * jax.random.normal(jax.random.wrap_key_data(key), mu.shape)
    u = conv(z.astype(bf16), p['un'])
    u = jax.image.resize(u, (B, 2 * H, 2 * W, C), 'bilinear') + jnp.repeat(jnp.repeat(u, 2, 1), 2, 2)
    u = conv(jax.nn.silu(group_norm(res(p, 'c', u), p['cg'], p['cb'])), p['out']).astype(f32)
    return jnp.mean(jnp.abs(u - x)) + 1e-6 * jnp.sum(mu ** 2 + jnp.exp(lv) - 1 - lv) / B


VAE = tree({'in': ((3, 3, 3, 128), f32), 'ag': ((128,), f32), 'ab': ((128,), f32), 'aw': ((3, 3, 128, 128), f32), 'down': ((3, 3, 128, 256), f32), 'cg': ((256,), f32), 'cb': ((256,), f32), 'cw': ((3, 3, 256, 256), f32),
            **{n: ((256, 256), f32) for n in 'qkvo'}, 'mid': ((3, 3, 256, 8), f32), 'un': ((3, 3, 4, 256), f32), 'out': ((3, 3, 256, 3), f32)})
emit('vae_train_bf16', jax.value_and_grad(vae_loss), VAE, S((4, 64, 64, 3), f32), S((2,), u32))


# Segmentation, channels first: batch norm in training with its running statistics, dilated branches, transposed steps up, a dice loss.
def batch_norm(x, g, b, mean, var, train):
    if train:
        mu, v = x.mean((0, 2, 3)), x.var((0, 2, 3))
        mean, var = 0.9 * mean + 0.1 * lax.stop_gradient(mu), 0.9 * var + 0.1 * lax.stop_gradient(v)
    else:
        mu, v = mean, var
    r = lambda a: a[:, None, None]
    return (x - r(mu)) * r(lax.rsqrt(v + 1e-5) * g) + r(b), mean, var


def aspp(p, st, x, train):
    new = {}

    def cbr(n, x, **k):
        y, *new[n] = batch_norm(conv_nchw(x, p[n], **k), p[n + 'g'], p[n + 'b'], *st[n], train)
        return jax.nn.relu(y)
    low = cbr('c0', x, s=2)
    h = cbr('c1', low, s=2)
    pool = jnp.broadcast_to(h.mean((2, 3), keepdims=True), h.shape)
    h = jnp.concatenate([cbr('d1', h), cbr('d2', h, dil=6), cbr('d3', h, dil=12), pool], 1)
    h = cbr('c2', h)
    h = lax.conv_general_dilated(h, p['up'], (1, 1), ((2, 2), (2, 2)), lhs_dilation=(2, 2), dimension_numbers=('NCHW', 'OIHW', 'NCHW'))
    h = jnp.concatenate([h[:, :, :low.shape[2], :low.shape[3]], low], 1)
    return jax.image.resize(conv_nchw(h, p['last']), (x.shape[0], 21, x.shape[2], x.shape[3]), 'bilinear'), new


def dice_step(p, st, x, y):
    def loss(p):
        out, new = aspp(p, st, x, True)
        pr, hot = jax.nn.softmax(out, 1), jax.nn.one_hot(y, 21, axis=1)
        dice = 1 - jnp.mean((2 * (pr * hot).sum((2, 3)) + 1) / ((pr + hot).sum((2, 3)) + 1))
        ce = -jnp.mean(jnp.sum(jax.nn.log_softmax(out, 1) * hot, 1))
        return dice + ce, new
    (l, new), g = jax.value_and_grad(loss, has_aux=True)(p)
    return jax.tree.map(lambda p, g: p - 0.01 * (g + 1e-4 * p), p, g), new, l


ASPP = {'c0': (64, 3, 3, 3), 'c1': (128, 64, 3, 3), 'd1': (64, 128, 1, 1), 'd2': (64, 128, 3, 3), 'd3': (64, 128, 3, 3), 'c2': (64, 320, 1, 1)}
SEG = {**{k: S(s, f32) for k, s in ASPP.items()}, **{k + e: S((s[0],), f32) for k, s in ASPP.items() for e in 'gb'}, 'up': S((64, 64, 4, 4), f32), 'last': S((21, 128, 1, 1), f32)}
STATS = {k: [S((s[0],), f32)] * 2 for k, s in ASPP.items()}
emit('segment_train_nchw', dice_step, SEG, STATS, S((8, 3, 128, 128), f32), S((8, 128, 128), i32), platform='cuda')
emit('segment_infer_nchw_f16', lambda p, st, x: jnp.argmax(aspp(p, st, x, False)[0], 1), jax.tree.map(lambda s: S(s.shape, f16), SEG), jax.tree.map(lambda s: S(s.shape, f16), STATS), S((8, 3, 128, 128), f16), platform='cuda')


# Detection: boxes from anchors, overlaps with truth, a focal loss; crops by bilinear gathers; suppression in a loop with an early end.
def iou(a, b):
    lo, hi = jnp.maximum(a[:, None, :2], b[None, :, :2]), jnp.minimum(a[:, None, 2:], b[None, :, 2:])
    inter = jnp.prod(jnp.maximum(hi - lo, 0), -1)
    area = lambda x: (x[:, 2] - x[:, 0]) * (x[:, 3] - x[:, 1])
    return inter / (area(a)[:, None] + area(b)[None] - inter + 1e-9)


def detect_loss(logits, deltas, anchors, boxes, labels):
    def one(logits, deltas, boxes, labels):
        o = iou(anchors, boxes)
        best, at = o.max(1), o.argmax(1)
        forced = jnp.zeros(anchors.shape[0], bool).at[o.argmax(0)].set(True)
        pos = (best > 0.5) | forced
        hot = jax.nn.one_hot(jnp.where(pos, labels[at], -1), 80)
        p = jax.nn.sigmoid(logits)
        ce = jnp.maximum(logits, 0) - logits * hot + jnp.log1p(jnp.exp(-jnp.abs(logits)))
        focal = jnp.where(hot > 0, 0.25 * (1 - p) ** 2, 0.75 * p ** 2) * ce
        wh, t = anchors[:, 2:] - anchors[:, :2], boxes[at]
        want = jnp.concatenate([(t[:, :2] - anchors[:, :2]) / wh, jnp.log((t[:, 2:] - t[:, :2]) / wh)], -1)
        d = jnp.abs(deltas - want)
        huber = jnp.where(d < 0.1, 5 * d * d, d - 0.05).sum(-1)
        n = jnp.maximum(pos.sum(), 1)
        return (jnp.sum(jnp.where(((best > 0.5) | (best < 0.4))[:, None], focal, 0)) + jnp.sum(jnp.where(pos, huber, 0))) / n
    return jnp.mean(jax.vmap(one)(logits, deltas, boxes, labels))


emit('focal_detection_grad', jax.value_and_grad(detect_loss, (0, 1)), S((8, 6000, 80), f32), S((8, 6000, 4), f32), S((6000, 4), f32), S((8, 32, 4), f32), S((8, 32), i32), platform='cuda')


def roi_align(feat, boxes):
    def crop(b):
        y, x = [b[n] + (jnp.arange(14) + 0.5) / 14 * (b[n + 2] - b[n]) for n in (0, 1)]
        return jax.vmap(lambda c: jax.scipy.ndimage.map_coordinates(c, jnp.meshgrid(y, x, indexing='ij'), 1, mode='nearest'), -1, -1)(feat)
    c = jax.vmap(crop)(boxes)
    return lax.reduce_window(c, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), 'VALID') / 4


def suppress(boxes, scores):
    def one(s):
        left, keep, n = s
        i = jnp.argmax(left)
        o = iou(boxes[i][None], boxes)[0]
        return jnp.where(o > 0.5, -1.0, left).at[i].set(-1.0), keep.at[n].set(i), n + 1
    return lax.while_loop(lambda s: (s[2] < 100) & (s[0].max() > 0.05), one, (scores, jnp.full(100, -1), 0))[1:]


emit('roi_align_nms', lambda f, b, s, w: (lambda keep: (jax.nn.relu(roi_align(f, b[keep[0]]).reshape(100, -1) @ w), keep))(suppress(b, s)), S((64, 64, 256), f32), S((1000, 4), f32), S((1000,), f32), S((49 * 256, 512), f32), platform='cuda')


# Volumes in time: convolutions of three dimensions, pools and their gradients; style transfer with instance norm and mirrored edges.
def video_loss(p, x, y):
    d = ('NDHWC', 'DHWIO', 'NDHWC')
    h = jax.nn.relu(lax.conv_general_dilated(x, p['a'], (1, 2, 2), 'SAME', dimension_numbers=d))
    h = lax.reduce_window(h, -jnp.inf, lax.max, (1, 1, 3, 3, 1), (1, 1, 2, 2, 1), 'SAME')
    h = jax.nn.relu(lax.conv_general_dilated(h, p['b'], (1, 1, 1), 'SAME', dimension_numbers=d))
    h = jax.nn.relu(lax.conv_general_dilated(h, p['c'], (2, 1, 1), 'SAME', dimension_numbers=d))
    h = lax.reduce_window(h, 0.0, lax.add, (1, 2, 2, 2, 1), (1, 2, 2, 2, 1), 'VALID') / 8
    return jnp.mean((h.mean((1, 2, 3)) @ p['w'] - y) ** 2)


emit('video_conv3d_train', jax.value_and_grad(video_loss), tree({'a': ((3, 7, 7, 3, 32), f32), 'b': ((1, 3, 3, 32, 64), f32), 'c': ((3, 1, 1, 64, 64), f32), 'w': ((64, 10), f32)}), S((4, 8, 64, 64, 3), f32), S((4, 10), f32), platform='cuda')


def style(p, x):
    def inorm(x, n):
        mu, v = x.mean((1, 2), keepdims=True), x.var((1, 2), keepdims=True)
        return (x - mu) / jnp.sqrt(v + 1e-5) * p[n + 'g'] + p[n + 'b']

    def mirrored(x, w, s=1):
        r = w.shape[0] // 2
        return lax.conv_general_dilated(jnp.pad(x, ((0, 0), (r, r), (r, r), (0, 0)), mode='reflect'), w, (s, s), 'VALID', dimension_numbers=('NHWC', 'HWIO', 'NHWC'))
    h = jax.nn.relu(inorm(mirrored(x, p['a']), 'a'))
    h = jax.nn.relu(inorm(mirrored(h, p['b'], 2), 'b'))
    h = h + inorm(mirrored(jax.nn.relu(inorm(mirrored(h, p['c']), 'c')), p['c']), 'c')
    h = jnp.repeat(jnp.repeat(h, 2, 1), 2, 2)
    return jax.nn.sigmoid(mirrored(jax.nn.relu(inorm(mirrored(h, p['d']), 'd')), p['e']))


def gram_loss(p, x, want):
    y = style(p, x)
    f = y.reshape(y.shape[0], -1, 3)
    tv = jnp.abs(jnp.diff(y, axis=1)).mean() + jnp.abs(jnp.diff(y, axis=2)).mean()
    return jnp.mean((jnp.einsum('bnc,bnd->bcd', f, f) / f.shape[1] - want) ** 2) + tv


STYLE = tree({'a': ((9, 9, 3, 32), f32), 'b': ((3, 3, 32, 64), f32), 'c': ((3, 3, 64, 64), f32), 'd': ((3, 3, 64, 32), f32), 'e': ((9, 9, 32, 3), f32), **{n + e: ((c,), f32) for n, c in (('a', 32), ('b', 64), ('c', 64), ('d', 32)) for e in 'gb'}})
emit('style_instance_norm', style, STYLE, S((4, 128, 128, 3), f32), platform='cuda')
emit('style_train', jax.value_and_grad(gram_loss), STYLE, S((4, 128, 128, 3), f32), S((4, 3, 3), f32), platform='cuda')


# A diffusion sampler: a small net in a loop with guidance, its noise from a table; pixel shuffle and grouped convolutions at the end.
def sampler(p, x, ctx, alphas, key):
    def eps(x, t):
        e = t * 10000.0 ** (-jnp.arange(32) / 32)
        e = jax.nn.silu(jnp.concatenate([jnp.sin(e), jnp.cos(e)]) @ p['t'])
        h = conv(x, p['i'])
        h = group_norm(h, p['g'], p['b'], 8) * (1 + e[:64]) + e[64:]
        B, H, W, C = h.shape
        q = (h.reshape(B, H * W, C) @ p['q']).reshape(B, H * W, 4, 16)
        k, v = [(ctx @ p[n]).reshape(B, -1, 4, 16) for n in 'kv']
        a = jnp.einsum('bhqk,bkhd->bqhd', jax.nn.softmax(jnp.einsum('bqhd,bkhd->bhqk', q, k) / 4), v)
        return conv(jax.nn.silu(h + a.reshape(h.shape)), p['o'])

    def one(i, c):
        x, key = c
        key, k = jax.random.split(key)
        both = eps(jnp.concatenate([x, x]), alphas.shape[0] - i.astype(f32))
        c, u = jnp.split(both, 2)
        e = u + 7.5 * (c - u)
        a, b = alphas[alphas.shape[0] - 1 - i], alphas[jnp.maximum(alphas.shape[0] - 2 - i, 0)]
        x0 = jnp.clip((x - jnp.sqrt(1 - a) * e) / jnp.sqrt(a), -1, 1)
        s = 0.5 * jnp.sqrt((1 - b) / (1 - a) * (1 - a / b))
        return jnp.sqrt(b) * x0 + jnp.sqrt(jnp.maximum(1 - b - s * s, 0)) * e + s * jax.random.normal(k, x.shape), key
    x, _ = lax.fori_loop(0, 50, one, (x, jax.random.wrap_key_data(key)))
    y = lax.conv_general_dilated(x, p['sh'], (1, 1), 'SAME', dimension_numbers=('NHWC', 'HWIO', 'NHWC'), feature_group_count=4)
    B, H, W, C = y.shape
    return y.reshape(B, H, W, 2, 2, C // 4).transpose(0, 1, 3, 2, 4, 5).reshape(B, 2 * H, 2 * W, C // 4)


emit('diffusion_sampler', sampler, tree({'t': ((64, 128), f32), 'i': ((3, 3, 4, 64), f32), 'g': ((64,), f32), 'b': ((64,), f32), 'q': ((64, 64), f32), 'k': ((128, 64), f32), 'v': ((128, 64), f32), 'o': ((3, 3, 64, 4), f32), 'sh': ((3, 3, 1, 16), f32)}),
     S((2, 32, 32, 4), f32), S((4, 77, 128), f32), S((50,), f32), S((2,), u32), platform='cuda')
