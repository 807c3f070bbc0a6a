"""Training as people set it up around large models: adapters, two towers, relative bias, rewards, distillation, experts, checkpoints by policy, optimizers of matrices."""
import functools

import jax
import jax.numpy as jnp
from jax import lax

from .common import S, adamw, bf16, emit, f32, i32, ln, norm, rope, tree


# Adapters of rank 8 on frozen bf16 weights: gradients and AdamW for the adapters alone, layers in a scan under a checkpoint.
def lora(x, w, a, b):
    return x @ w + ((x @ a.astype(x.dtype)) @ b.astype(x.dtype)) * jnp.asarray(2.0, x.dtype)


def lora_layer(x, wa):
    w, a = wa
    B, T, D = x.shape
    h = norm(x, w['n1'])
    q = rope(lora(h, w['q'], a['qa'], a['qb']).reshape(B, T, 8, 64), jnp.arange(T)[None])
    k = rope((h @ w['k']).reshape(B, T, 2, 64), jnp.arange(T)[None])
    v = lora(h, w['v'], a['va'], a['vb']).reshape(B, T, 2, 64)
    s = jnp.einsum('btgrd,bsgd->bgrts', q.reshape(B, T, 2, 4, 64), k, preferred_element_type=f32) / 8
    s = jnp.where(jnp.tril(jnp.ones((T, T), bool)), s, -1e9)
    o = jnp.einsum('bgrts,bsgd->btgrd', jax.nn.softmax(s, -1).astype(x.dtype), v).reshape(B, T, D)
    x = x + o @ w['o']
    h = norm(x, w['n2'])
    return x + (jax.nn.silu(h @ w['g']) * (h @ w['u'])) @ w['d'], None


def lora_loss(ad, base, ids, mask):
    x = base['e'][ids[:, :-1]]
    x, _ = lax.scan(jax.checkpoint(lora_layer), x, (base['layers'], ad))
    logits = (norm(x, base['n']) @ base['e'].T).astype(f32)
    nll = jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, ids[:, 1:, None], -1)[..., 0]
    return jnp.sum(nll * mask) / jnp.maximum(mask.sum(), 1)


def lora_step(ad, m, v, t, base, ids, mask):
    loss, g = jax.value_and_grad(lora_loss)(ad, base, ids, mask)
    ad, m, v, n = adamw(ad, g, m, v, t)
    return ad, m, v, loss, n


FROZEN = {'e': S((8192, 512), bf16), 'n': S((512,), f32), 'layers': tree({
    'n1': ((4, 512), f32), 'n2': ((4, 512), f32), 'q': ((4, 512, 512), bf16), 'k': ((4, 512, 128), bf16), 'v': ((4, 512, 128), bf16), 'o': ((4, 512, 512), bf16),
    'g': ((4, 512, 1536), bf16), 'u': ((4, 512, 1536), bf16), 'd': ((4, 1536, 512), bf16)})}
ADAPTERS = tree({'qa': ((4, 512, 8), f32), 'qb': ((4, 8, 512), f32), 'va': ((4, 512, 8), f32), 'vb': ((4, 8, 128), f32)})
emit('lora_finetune', lora_step, ADAPTERS, ADAPTERS, ADAPTERS, S((), f32), FROZEN, S((4, 129), i32), S((4, 128), f32), platform='cuda')


# Two towers with a sigmoid loss for each pair (SigLIP), attention pooling, bf16 inside.
def vit_block(p, x):
    B, T, D = x.shape
    h = ln(x.astype(f32), p['g1'], p['b1']).astype(bf16)
    qkv = (h @ p['qkv'].astype(bf16) + p['bq'].astype(bf16)).reshape(B, T, 3, 6, 64)
    o = jax.nn.dot_product_attention(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2])
    x = x + o.reshape(B, T, D) @ p['o'].astype(bf16) + p['bo'].astype(bf16)
    h = ln(x.astype(f32), p['g2'], p['b2']).astype(bf16)
    return x + jax.nn.gelu(h @ p['w1'].astype(bf16) + p['c1'].astype(bf16)) @ p['w2'].astype(bf16) + p['c2'].astype(bf16)


def siglip_loss(p, image, text, mask):
    x = lax.conv_general_dilated(image.astype(bf16), p['patch'].astype(bf16), (16, 16), 'VALID', dimension_numbers=('NHWC', 'HWIO', 'NHWC'))
    x = x.reshape(x.shape[0], -1, 384) + p['pos'].astype(bf16)
    x = vit_block(p['i'], x)
    probe = jnp.einsum('d,btd->bt', p['probe'], x.astype(f32))
    zi = jnp.einsum('bt,btd->bd', jax.nn.softmax(probe, -1), x.astype(f32)) @ p['wi']
    y = vit_block(p['t'], p['e'][text].astype(bf16))
    zt = (jnp.sum(y.astype(f32) * mask[..., None], 1) / jnp.maximum(mask.sum(1, keepdims=True), 1)) @ p['wt']
    zi, zt = [z / (jnp.linalg.norm(z, axis=-1, keepdims=True) + 1e-6) for z in (zi, zt)]
    logits = zi @ zt.T * jnp.exp(p['scale']) + p['bias']
    labels = 2 * jnp.eye(logits.shape[0]) - 1
    return -jnp.mean(jnp.sum(jax.nn.log_sigmoid(labels * logits), -1))


BLOCK = tree({'g1': ((384,), f32), 'b1': ((384,), f32), 'g2': ((384,), f32), 'b2': ((384,), f32), 'qkv': ((384, 1152), f32), 'bq': ((1152,), f32),
              'o': ((384, 384), f32), 'bo': ((384,), f32), 'w1': ((384, 1536), f32), 'c1': ((1536,), f32), 'w2': ((1536, 384), f32), 'c2': ((384,), f32)})
emit('siglip_train_bf16', jax.value_and_grad(siglip_loss), {'patch': S((16, 16, 3, 384), f32), 'pos': S((196, 384), f32), 'i': BLOCK, 't': BLOCK, 'probe': S((384,), f32),
     'e': S((16000, 384), f32), 'wi': S((384, 256), f32), 'wt': S((384, 256), f32), 'scale': S((), f32), 'bias': S((), f32)},
     S((32, 224, 224, 3), f32), S((32, 64), i32), S((32, 64), f32), platform='cuda')


# T5's buckets for relative positions, with the gradient of the table; gated gelu.
def buckets(q, k, n=32, far=128):
    rel = k[None, :] - q[:, None]
    side = (rel > 0).astype(i32) * (n // 2)
    rel = jnp.abs(rel)
    large = 8 + (jnp.log(rel.astype(f32) / 8 + 1e-9) / jnp.log(far / 8.0) * 8).astype(i32)
    return side + jnp.where(rel < 8, rel, jnp.minimum(large, 15))


def t5_gated(p, x):
    B, T, D = x.shape
    bias = p['rel'][buckets(jnp.arange(T), jnp.arange(T))].transpose(2, 0, 1)
    for n in range(2):
        w = p[f'l{n}']
        h = norm(x, w['n1'])
        q, k, v = [(h @ w[n]).reshape(B, T, 8, 32) for n in 'qkv']
        s = jnp.einsum('bqhd,bkhd->bhqk', q, k) + bias
        x = x + jnp.einsum('bhqk,bkhd->bqhd', jax.nn.softmax(s, -1), v).reshape(B, T, -1) @ w['o']
        h = norm(x, w['n2'])
        x = x + (jax.nn.gelu(h @ w['g'], approximate=True) * (h @ w['u'])) @ w['d']
    return x


def denoise_loss(p, ids, labels):
    logits = t5_gated(p, p['e'][ids] * 16) @ p['e'].T / 16
    z = jax.nn.logsumexp(logits, -1)
    nll = z - jnp.take_along_axis(logits, labels[..., None], -1)[..., 0]
    return jnp.mean(nll + 1e-4 * z ** 2)


T5G = tree({'n1': ((256,), f32), 'n2': ((256,), f32), **{n: ((256, 256), f32) for n in 'qkvo'}, 'g': ((256, 640), f32), 'u': ((256, 640), f32), 'd': ((640, 256), f32)})
emit('t5_relative_train', jax.value_and_grad(denoise_loss), {'e': S((4096, 256), f32), 'rel': S((32, 8), f32), 'l0': T5G, 'l1': T5G}, S((8, 128), i32), S((8, 128), i32), platform='cuda')


# Experts by capacity with one-hot dispatch (Switch, GShard), two a token, noise on the router, balance loss.
def gshard(p, x, noise):
    G, T, D = x.shape
    E, C = 8, 64
    gates = jax.nn.softmax((x.astype(f32) @ p['r']) + noise, -1)
    out, used, combine = gates, jnp.zeros((G, 1, E)), jnp.zeros((G, T, E, C))
    for _ in range(2):
        one = jax.nn.one_hot(jnp.argmax(out, -1), E)
        at = (jnp.cumsum(one, 1) - 1 + used) * one
        used = used + one.sum(1, keepdims=True)
        fits = one * (at < C)
        where = jax.nn.one_hot(jnp.sum(at * fits, -1).astype(i32), C) * fits.sum(-1, keepdims=True)
        combine = combine + jnp.sum(gates * fits, -1)[..., None, None] * fits[..., None] * where[:, :, None]
        out = out * (1 - one)
    combine = combine / jnp.maximum(combine.sum((2, 3), keepdims=True), 1e-9)
    y = jnp.einsum('gtec,gtd->egcd', (combine > 0).astype(bf16), x)
    y = jax.nn.gelu(jnp.einsum('egcd,edf->egcf', y, p['w1'].astype(bf16)))
    y = jnp.einsum('egcf,efd->egcd', y, p['w2'].astype(bf16))
    balance = E * jnp.mean(gates.mean(1) * jax.nn.one_hot(jnp.argmax(gates, -1), E).mean(1))
    return jnp.einsum('gtec,egcd->gtd', combine.astype(bf16), y), balance


def gshard_loss(p, x, noise):
    y, b = gshard(p, x, noise)
    return jnp.mean((x + y).astype(f32) ** 2) + 0.01 * b


GSHARD = tree({'r': ((256, 8), f32), 'w1': ((8, 256, 1024), f32), 'w2': ((8, 1024, 256), f32)})
emit('moe_capacity_train', jax.value_and_grad(gshard_loss), GSHARD, S((4, 256, 256), bf16), S((4, 256, 8), f32), platform='cuda')


# Preferences: two answers, a frozen reference, log-probabilities over masked tokens (DPO); checkpoints that keep products alone.
def answers(p, ids, mask):
    x = p['e'][ids[:, :-1]]
    for n in range(2):
        w = p[f'l{n}']

        @functools.partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable)
        def layer(w, x):
            B, T, D = x.shape
            q, k, v = jnp.split(norm(x, w['n1']) @ w['qkv'], 3, -1)
            q, k, v = [y.reshape(B, T, 4, 64) for y in (q, k, v)]
            x = x + jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(B, T, D) @ w['o']
            return x + jax.nn.gelu(norm(x, w['n2']) @ w['w1']) @ w['w2']
        x = layer(w, x)
    logits = norm(x, p['n']) @ p['h']
    return jnp.sum(jnp.take_along_axis(jax.nn.log_softmax(logits.astype(f32), -1), ids[:, 1:, None], -1)[..., 0] * mask, -1)


def dpo(p, ref, good, bad, mg, mb):
    r = [answers(p, i, m) - lax.stop_gradient(answers(ref, i, m)) for i, m in ((good, mg), (bad, mb))]
    d = 0.1 * (r[0] - r[1])
    return -jnp.mean(jax.nn.log_sigmoid(d)), jnp.mean(d > 0)


DPOL = tree({'n1': ((256,), f32), 'n2': ((256,), f32), 'qkv': ((256, 768), bf16), 'o': ((256, 256), bf16), 'w1': ((256, 1024), bf16), 'w2': ((1024, 256), bf16)})
DPO = {'e': S((4000, 256), bf16), 'h': S((256, 4000), bf16), 'n': S((256,), f32), 'l0': DPOL, 'l1': DPOL}
emit('dpo_policy_remat', jax.value_and_grad(dpo, has_aux=True), DPO, DPO, S((4, 97), i32), S((4, 97), i32), S((4, 96), f32), S((4, 96), f32), platform='cuda')


# Distillation of a perceptron mixer by temperature, with weights kept as a moving mean, label mix and Nesterov momentum.
def student(p, x):
    x = x.reshape(x.shape[0], 8, 4, 8, 4, 3).transpose(0, 1, 3, 2, 4, 5).reshape(x.shape[0], 64, 48) @ p['s']
    x = x + jnp.swapaxes(jax.nn.gelu(jnp.swapaxes(ln(x, p['g1'], p['b1']), 1, 2) @ p['t1']) @ p['t2'], 1, 2)
    x = x + jax.nn.gelu(ln(x, p['g2'], p['b2']) @ p['c1']) @ p['c2']
    return x.mean(1) @ p['h']


def distill(p, mom, ema, teacher, x, y):
    def loss(p):
        s, t = student(p, x), lax.stop_gradient(student(teacher, x))
        soft = -jnp.mean(jnp.sum(jax.nn.softmax(t / 4) * jax.nn.log_softmax(s / 4), -1)) * 16
        hard = -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(s), y[:, None], 1))
        return 0.7 * soft + 0.3 * hard, jnp.mean(jnp.argmax(s, -1) == y)
    (l, acc), g = jax.value_and_grad(loss, has_aux=True)(p)
    mom = jax.tree.map(lambda m, g, p: 0.9 * m + g + 1e-4 * p, mom, g, p)
    p = jax.tree.map(lambda p, m, g: p - 0.05 * (g + 0.9 * m), p, mom, g)
    return p, mom, jax.tree.map(lambda e, p: 0.999 * e + 0.001 * p, ema, p), l, acc


STUDENT = tree({'s': ((48, 128), f32), 'g1': ((128,), f32), 'b1': ((128,), f32), 'g2': ((128,), f32), 'b2': ((128,), f32), 't1': ((64, 256), f32), 't2': ((256, 64), f32),
                'c1': ((128, 512), f32), 'c2': ((512, 128), f32), 'h': ((128, 100), f32)})
emit('mixer_distill_ema', distill, STUDENT, STUDENT, STUDENT, STUDENT, S((128, 32, 32, 3), f32), S((128,), i32), platform='cuda')


# Preconditioners of both sides (Shampoo) by inverse roots through an eigendecomposition's polynomial, grafted to Adam's size; sharpness-aware gradients.
def root(a):
    n = jnp.linalg.norm(a)
    def one(_, s):
        y, z = s
        t = 0.5 * (3 * jnp.eye(a.shape[0]) - z @ y)
        return y @ t, t @ z
    return lax.fori_loop(0, 8, one, (a / n, jnp.eye(a.shape[0])))[1] / jnp.sqrt(n)


def shampoo(p, l, r, v, x, y):
    def loss(p):
        h = jnp.tanh(x @ p['a'])
        return jnp.mean((h @ p['b'] - y) ** 2)
    g = jax.grad(loss)(p)
    size = jnp.sqrt(sum(jnp.sum(x ** 2) for x in jax.tree.leaves(g)))
    value, g = jax.value_and_grad(loss)(jax.tree.map(lambda p, g: p + 0.05 * g / (size + 1e-12), p, g))
    l = jax.tree.map(lambda l, g: 0.95 * l + 0.05 * g @ g.T, l, g)
    r = jax.tree.map(lambda r, g: 0.95 * r + 0.05 * g.T @ g, r, g)
    v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, g)

    def one(p, g, l, r, v):
        u = root(l + 1e-4 * jnp.eye(l.shape[0])) @ g @ root(r + 1e-4 * jnp.eye(r.shape[0]))
        adam = g / (jnp.sqrt(v) + 1e-8)
        return p - 1e-3 * u * (jnp.linalg.norm(adam) / (jnp.linalg.norm(u) + 1e-9))
    return jax.tree.map(one, p, g, l, r, v), l, r, v, value


SHAMPOO = tree({'a': ((128, 256), f32), 'b': ((256, 64), f32)})
emit('shampoo_sharpness', shampoo, SHAMPOO, tree({'a': ((128, 128), f32), 'b': ((256, 256), f32)}), tree({'a': ((256, 256), f32), 'b': ((64, 64), f32)}), SHAMPOO,
     S((512, 128), f32), S((512, 64), f32), platform='cuda')


# Meta-learning: inner steps by gradient in a vmap over tasks, the outer gradient through them.
def maml(p, xs, ys, xq, yq):
    def net(p, x):
        return jnp.sin(x @ p['a'] + p['b']) @ p['c']

    def task(x, y, xq, yq):
        q = p
        for _ in range(2):
            q = jax.tree.map(lambda w, g: w - 0.01 * g, q, jax.grad(lambda q: jnp.mean((net(q, x) - y) ** 2))(q))
        return jnp.mean((net(q, xq) - yq) ** 2)
    return jnp.mean(jax.vmap(task)(xs, ys, xq, yq))


emit('maml_sine', jax.value_and_grad(maml), tree({'a': ((4, 64), f32), 'b': ((64,), f32), 'c': ((64, 2), f32)}), *[S((16, 20, n), f32) for n in (4, 2, 4, 2)], platform='cuda')
