"""A tagger of short sequences: two blocks of attention and a small network, and scores of the tags at its end."""
import sys

import jax
import jax.numpy as jnp

HEADS, WIDTH, TAGS = 2, 16, 8


def layer_norm(x, scale):
    mean = x.mean(-1, keepdims=True)
    spread = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(spread + 1e-5) * scale


def softmax(x):
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(x, qkv, out):
    length = x.shape[0]
    q, k, v = jnp.split((x @ qkv).reshape(length, HEADS, -1), 3, axis=-1)
    scores = jnp.einsum("ihd,jhd->hij", q, k) / jnp.sqrt(q.shape[-1])
    mixed = jnp.einsum("hij,jhd->ihd", softmax(scores), v)
    return mixed.reshape(length, -1) @ out


def block(x, p):
    x = x + attention(layer_norm(x, p["scale_1"]), p["qkv"], p["out"])
    hidden = jax.nn.gelu(layer_norm(x, p["scale_2"]) @ p["up"])
    return x + hidden @ p["down"]


def tag(params, tokens):
    x = params["table"][tokens]
    for i, p in enumerate(params["blocks"]):
        with jax.named_scope(f"block_{i}"):
            x = block(x, p)
    return layer_norm(x, params["scale"]) @ params["head"]


def lowered(length=12, layers=2):
    def array(*dims, type=jnp.float32):
        return jax.ShapeDtypeStruct(dims, type)

    layer = {"scale_1": array(WIDTH), "scale_2": array(WIDTH), "qkv": array(WIDTH, 3 * WIDTH), "out": array(WIDTH, WIDTH),
             "up": array(WIDTH, 2 * WIDTH), "down": array(2 * WIDTH, WIDTH)}
    params = {"table": array(50, WIDTH), "blocks": [dict(layer) for _ in range(layers)], "scale": array(WIDTH), "head": array(WIDTH, TAGS)}
    return jax.jit(tag).lower(params, array(length, type=jnp.int32))


if __name__ == "__main__":
    with open(sys.argv[1], "wb") as out:
        out.write(lowered().compiler_ir("hlo").as_serialized_hlo_module_proto())
