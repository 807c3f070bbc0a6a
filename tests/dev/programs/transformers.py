"""Transformers: GPT, ViT, BERT, T5, whisper, with and without loops over layers, caches and checkpoints."""
import jax
import jax.numpy as jnp
from jax import lax

from .common import S, attn, adamw, bf16, dropout, emit, f32, i32, ln, norm, rope, tree, u32


def rms(x, g):
    return x * lax.rsqrt((x.astype(f32) ** 2).mean(-1, keepdims=True) + 1e-06).astype(x.dtype) * g


def block(x, p):
    x = x + attn(ln(x, p['g1'], p['b1']), p['q'], p['k'], p['v'], p['o'], 8)
    h = ln(x, p['g2'], p['b2'])
    return x + jax.nn.gelu(h @ p['w1'] + p['c1']) @ p['w2'] + p['c2']


def bp(D, F, t=f32):
    return dict(g1=S((D,), t), b1=S((D,), t), g2=S((D,), t), b2=S((D,), t), q=S((D, D), t), k=S((D, D), t), v=S((D, D), t), o=S((D, D), t), w1=S((D, F), t), c1=S((F,), t), w2=S((F, D), t), c2=S((D,), t))


def gpt(p, ids):
    x = p['e'][ids] + p['pos'][:ids.shape[1]]
    for b in p['bl']:
        x = block(x, b)
    return x @ p['e'].T
GP = dict(e=S((8192, 512), f32), pos=S((256, 512), f32), bl=[bp(512, 2048) for _ in range(2)])


def gpt_step(p, ids):

    def loss(p):
        l = gpt(p, ids[:, :-1])
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(l), ids[:, 1:, None], -1))
    l, g = jax.value_and_grad(loss)(p)
    n = jnp.sqrt(sum((jnp.sum(x * x) for x in jax.tree.leaves(g))))
    c = jnp.minimum(1.0, 1 / n)
    return (jax.tree.map(lambda p, g: p - 0.1 * c * g, p, g), l)
emit('gpt_train', gpt_step, GP, S((8, 129), i32))
h16 = jax.tree.map(lambda s: S(s.shape, bf16), GP)
emit('gpt_infer_bf16', gpt, h16, S((8, 128), i32))
SP = jax.tree.map(lambda s: S((4,) + s.shape, bf16), bp(512, 2048))


def scanned(p, x, y):

    def loss(p):
        o, _ = lax.scan(lambda c, l: (jax.checkpoint(block)(c, l), None), x, p)
        return jnp.mean((o.astype(f32) - y) ** 2)
    return jax.value_and_grad(loss)(p)
emit('scan_remat_bf16', scanned, SP, S((4, 128, 512), bf16), S((4, 128, 512), f32))


def decode_unrolled(p, tok, ck, cv, pos):
    D, h = (512, 8)
    d = 64

    def rope(x, pos):
        fr = 1 / 10000 ** (jnp.arange(0, d, 2) / d)
        a = pos * fr
        c, s = (jnp.cos(a), jnp.sin(a))
        x1, x2 = (x[..., ::2], x[..., 1::2])
        return jnp.stack([x1 * c - x2 * s, x1 * s + x2 * c], -1).reshape(x.shape)

    def one(st, _):
        tok, ck, cv, pos = st
        x = p['e'][tok].astype(bf16)
        for i, l in enumerate(p['l']):
            y = rms(x, l['g'])
            q = rope((y @ l['q']).reshape(-1, h, d).astype(f32), pos)
            k = rope((y @ l['k']).reshape(-1, h, d).astype(f32), pos).astype(bf16)
            v = (y @ l['v']).reshape(-1, h, d)
            ck = lax.dynamic_update_slice(ck, k[None, :, None], (i, 0, pos, 0, 0))
            cv = lax.dynamic_update_slice(cv, v[None, :, None], (i, 0, pos, 0, 0))
            s = jnp.einsum('bhd,bthd->bht', q.astype(bf16), ck[i]).astype(f32) / 8
            s = jnp.where(jnp.arange(ck.shape[2]) <= pos, s, -1000000000.0)
            o = jnp.einsum('bht,bthd->bhd', jax.nn.softmax(s).astype(bf16), cv[i]).reshape(-1, D)
            x = x + o @ l['o']
            y = rms(x, l['g2'])
            x = x + jax.nn.silu(y @ l['w1']) * (y @ l['w3']) @ l['w2']
        lg = (x @ p['e'].T.astype(bf16)).astype(f32)
        tok = jnp.argmax(lg, -1).astype(i32)
        return ((tok, ck, cv, pos + 1), tok)
    return lax.scan(one, (tok, ck, cv, pos), None, length=16)
LP = dict(e=S((4096, 512), f32), l=[dict(g=S((512,), bf16), g2=S((512,), bf16), q=S((512, 512), bf16), k=S((512, 512), bf16), v=S((512, 512), bf16), o=S((512, 512), bf16), w1=S((512, 1024), bf16), w3=S((512, 1024), bf16), w2=S((1024, 512), bf16)) for _ in range(2)])
emit('llama_decode', decode_unrolled, LP, S((4,), i32), S((2, 4, 128, 8, 64), bf16), S((2, 4, 128, 8, 64), bf16), S((), i32))


def vit(p, x):
    x = lax.conv_general_dilated(x, p['patch'], (16, 16), 'VALID', dimension_numbers=('NHWC', 'HWIO', 'NHWC'))
    B = x.shape[0]
    x = x.reshape(B, -1, 384)
    x = jnp.concatenate([jnp.broadcast_to(p['cls'], (B, 1, 384)), x], 1) + p['pos']
    for b in p['bl']:
        x = x + attn(ln(x, b['g1'], b['b1']), b['q'], b['k'], b['v'], b['o'], 6, False)
        h = ln(x, b['g2'], b['b2'])
        x = x + jax.nn.gelu(h @ b['w1'] + b['c1']) @ b['w2'] + b['c2']
    return x[:, 0] @ p['head']

emit('vit_infer', vit, dict(patch=S((16, 16, 3, 384), f32), cls=S((1, 1, 384), f32), pos=S((1, 197, 384), f32), bl=[bp(384, 1536) for _ in range(2)], head=S((384, 1000), f32)), S((8, 224, 224, 3), f32))

emit('batch_attn_mask_f16', lambda q, k, v, m: jnp.einsum('bhqk,bkhd->bqhd', jax.nn.softmax(jnp.where(m, jnp.einsum('bqhd,bkhd->bhqk', q, k), jnp.float16(-10000.0)), -1), v), S((2, 128, 4, 64), jnp.float16), S((2, 128, 4, 64), jnp.float16), S((2, 128, 4, 64), jnp.float16), S((2, 1, 128, 128), bool))


# BERT: masks, dropout by keys, tied embeddings, half precision inside, full precision weights.
def bert_layer(p, x, mask, key):
    B, T, D = x.shape
    q, k, v = [(x @ p[n].astype(x.dtype)).reshape(B, T, 8, D // 8) for n in 'qkv']
    s = jnp.einsum('bqhd,bkhd->bhqk', q, k).astype(f32) / 8 + mask
    a = dropout(key, jax.nn.softmax(s).astype(x.dtype))
    y = jnp.einsum('bhqk,bkhd->bqhd', a, v).reshape(B, T, D) @ p['o'].astype(x.dtype)
    x = norm(x + y, p['g1'], p['b1'])
    h = jax.nn.gelu(x @ p['w1'].astype(x.dtype) + p['c1'].astype(x.dtype), approximate=False)
    return norm(x + h @ p['w2'].astype(x.dtype), p['g2'], p['b2'])


D = 256
LAYER = {**{n: ((D, D), f32) for n in 'qkvo'}, 'g1': ((D,), f32), 'b1': ((D,), f32), 'g2': ((D,), f32), 'b2': ((D,), f32),
         'w1': ((D, 4 * D), f32), 'c1': ((4 * D,), f32), 'w2': ((4 * D, D), f32)}


def bert_loss(p, ids, pad, labels, key, half):
    x = p['e'][ids] + p['pos'][None, :ids.shape[1]]
    x = x.astype(half)
    mask = jnp.where(pad[:, None, None, :], 0.0, -1e9)
    for n in range(2):
        x = bert_layer(p[f'l{n}'], x, mask, jax.random.fold_in(jax.random.wrap_key_data(key), n))
    logits = (x.astype(f32) @ p['e'].T)
    ll = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1)[..., 0]
    return -jnp.sum(jnp.where(pad, ll, 0)) / jnp.maximum(1, jnp.sum(pad))


BERT = {'e': S((4096, D), f32), 'pos': S((512, D), f32), 'l0': tree(LAYER), 'l1': tree(LAYER)}
for half, n in ((bf16, 'bf16'), (f32, 'f32')):
    def bert_step(p, m, v, t, ids, pad, labels, key, half=half):
        l, g = jax.value_and_grad(bert_loss)(p, ids, pad, labels, key, half)
        return (*adamw(p, g, m, v, t), l)
    emit(f'bert_train_{n}', bert_step, BERT, BERT, BERT, S((), f32), S((8, 128), i32), S((8, 128), bool), S((8, 128), i32), S((2,), u32))


# A decoder of layers in a scan, grouped heads, rotary positions, cache updated in place.
def decode(p, cache_k, cache_v, tok, pos):
    x = p['e'][tok].astype(bf16)

    def layer(x, w):
        w, ck, cv = w
        h = norm(x, w['n1'])
        q = rope((h @ w['q']).reshape(-1, 1, 8, 64), pos[:, None])
        k = rope((h @ w['k']).reshape(-1, 1, 2, 64), pos[:, None])
        v = (h @ w['v']).reshape(-1, 1, 2, 64)
        put = jax.vmap(lambda c, n, i: lax.dynamic_update_slice(c, n, (i, 0, 0)))
        ck, cv = put(ck, k, pos), put(cv, v, pos)
        s = jnp.einsum('bghd,btgd->bght', q.reshape(-1, 2, 4, 64), ck).astype(f32) / 8
        s = jnp.where(jnp.arange(ck.shape[1])[None, None, None] <= pos[:, None, None, None], s, -1e30)
        a = jnp.einsum('bght,btgd->bghd', jax.nn.softmax(s).astype(bf16), cv).reshape(-1, 512)
        x = x + a @ w['o']
        h = norm(x, w['n2'])
        return x + (jax.nn.silu(h @ w['w1']) * (h @ w['w3'])) @ w['w2'], (ck, cv)
    x, (ck, cv) = lax.scan(layer, x, (p['layers'], cache_k, cache_v))
    logits = norm(x, p['n']).astype(f32) @ p['e'].T
    return jnp.argmax(logits, -1), ck, cv


LLAMA = {'q': ((512, 512), bf16), 'k': ((512, 128), bf16), 'v': ((512, 128), bf16), 'o': ((512, 512), bf16), 'n1': ((512,), f32),
         'n2': ((512,), f32), 'w1': ((512, 1536), bf16), 'w3': ((512, 1536), bf16), 'w2': ((1536, 512), bf16)}
STACK = {'layers': tree({k: ((4, *s), t) for k, (s, t) in LLAMA.items()}), 'e': S((2048, 512), f32), 'n': S((512,), f32)}
CACHE = S((4, 8, 256, 2, 64), bf16)
emit('decode_scan', decode, STACK, CACHE, CACHE, S((8,), i32), S((8,), i32))
emit('generate', lambda p, ck, cv, t, pos: lax.fori_loop(0, 16, lambda i, s: (lambda r: (r[1], r[2], r[0].astype(i32), s[3] + 1))(decode(p, s[0], s[1], s[2], s[3])), (ck, cv, t, pos)),
     STACK, CACHE, CACHE, S((8,), i32), S((8,), i32))


def prefill_loss(p, ids):
    x = p['e'][ids].astype(bf16)
    B, T, _ = x.shape

    @jax.checkpoint
    def layer(x, w):
        h = norm(x, w['n1'])
        pos = jnp.arange(T)[None]
        q, k, v = rope((h @ w['q']).reshape(B, T, 8, 64), pos), rope((h @ w['k']).reshape(B, T, 2, 64), pos), (h @ w['v']).reshape(B, T, 2, 64)
        k, v = jnp.repeat(k, 4, 2), jnp.repeat(v, 4, 2)
        s = jnp.einsum('bqhd,bkhd->bhqk', q, k, preferred_element_type=f32) / 8
        s = jnp.where(jnp.tril(jnp.ones((T, T), bool)), s, -1e30)
        x = x + jnp.einsum('bhqk,bkhd->bqhd', jax.nn.softmax(s).astype(bf16), v).reshape(B, T, 512) @ w['o']
        h = norm(x, w['n2'])
        return x + (jax.nn.silu(h @ w['w1']) * (h @ w['w3'])) @ w['w2'], None
    x, _ = lax.scan(layer, x, p['layers'])
    logits = norm(x, p['n'])[:, :-1].astype(f32) @ p['e'].T
    return jnp.mean(jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, ids[:, 1:, None], -1)[..., 0])


emit('llama_train_scan', lambda p, ids: jax.value_and_grad(prefill_loss)(p, ids), STACK, S((4, 128), i32))


def t5(p, x):
    B, T, _ = x.shape
    rel = jnp.arange(T)[None] - jnp.arange(T)[:, None]
    n = jnp.abs(rel)
    bucket = jnp.where(rel > 0, 16, 0) + jnp.where(n < 8, n, jnp.minimum(15, 8 + (jnp.log(jnp.maximum(n, 1) / 8) / jnp.log(16.0) * 8).astype(i32)))
    bias = p['bias'][bucket].transpose(2, 0, 1)[None]
    h = norm(x, p['n'])
    q, k, v = [(h @ p[n]).reshape(B, T, 8, 32).transpose(0, 2, 1, 3) for n in 'qkv']
    a = jax.nn.softmax((q @ k.transpose(0, 1, 3, 2)).astype(f32) + bias).astype(x.dtype)
    x = x + (a @ v).transpose(0, 2, 1, 3).reshape(B, T, 256) @ p['o']
    h = norm(x, p['m'])
    return x + (jax.nn.gelu(h @ p['w1']) * (h @ p['w3'])) @ p['w2']


T5 = {**{n: ((256, 256), bf16) for n in 'qkvo'}, 'bias': ((32, 8), f32), 'n': ((256,), f32), 'm': ((256,), f32), 'w1': ((256, 512), bf16), 'w3': ((256, 512), bf16), 'w2': ((512, 256), bf16)}
emit('t5_infer', t5, tree(T5), S((4, 96, 256), bf16))
emit('t5_train', lambda p, x: jax.value_and_grad(lambda p: jnp.mean(t5(p, x).astype(f32) ** 2))(p), tree(T5), S((4, 96, 256), bf16))


def whisper(p, mel):
    x = jax.nn.gelu(lax.conv_general_dilated(mel, p['c1'], (1,), [(1, 1)], dimension_numbers=('NWC', 'WIO', 'NWC')))
    x = jax.nn.gelu(lax.conv_general_dilated(x, p['c2'], (2,), [(1, 1)], dimension_numbers=('NWC', 'WIO', 'NWC')))
    x = x + p['pos'][None, :x.shape[1]]
    B, T, C = x.shape
    h = norm(x, p['g'], p['b'])
    q, k, v = [(h @ p[n]).reshape(B, T, 4, C // 4) for n in 'qkv']
    a = jax.nn.softmax(jnp.einsum('bqhd,bkhd->bhqk', q * 0.125, k))
    return x + jnp.einsum('bhqk,bkhd->bqhd', a, v).reshape(B, T, C) @ p['o']


emit('whisper_encoder', whisper, tree({'c1': ((3, 80, 256), f32), 'c2': ((3, 256, 256), f32), 'pos': ((512, 256), f32), 'g': ((256,), f32), 'b': ((256,), f32),
     **{n: ((256, 256), f32) for n in 'qkvo'}}), S((2, 300, 80), f32))
