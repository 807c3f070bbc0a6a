"""A small training program as users write them: what tests/dev/docs/jax_run.py has jax compile. init, train, eval, metrics, over thirty modules."""
import functools

import jax
import jax.numpy as jnp

WIDTH, CLASSES, BATCH = 32, 10, 16


@jax.jit
def init_params(key):
    a, b, c, d = jax.random.split(key, 4)
    return {"conv": jax.random.normal(a, (3, 3, 3, 8)) * 0.2, "dense": jax.random.normal(b, (8 * 16, WIDTH)) * 0.1, "bias": jnp.zeros(WIDTH),
            "head": jax.random.normal(c, (WIDTH, CLASSES)) * 0.1, "scale": jnp.ones(WIDTH), "table": jax.random.normal(d, (100, WIDTH)) * 0.1}


@jax.jit
def init_moments(params):
    return jax.tree.map(jnp.zeros_like, params), jax.tree.map(jnp.zeros_like, params)


@jax.jit
def make_batch(key):
    images, labels = jax.random.split(key)
    return jax.random.uniform(images, (BATCH, 16, 16, 3)), jax.random.randint(labels, (BATCH,), 0, CLASSES)


@jax.jit
def augment(key, images):
    flip = jax.random.bernoulli(key, 0.5, (images.shape[0], 1, 1, 1))
    padded = jnp.pad(jnp.where(flip, images[:, :, ::-1], images), ((0, 0), (2, 2), (2, 2), (0, 0)), mode="reflect")
    return jax.lax.dynamic_slice(padded, (0, 1, 3, 0), images.shape)


@jax.jit
def normalise(images):
    mean = images.mean((0, 1, 2), keepdims=True)
    return (images - mean) / jnp.sqrt(images.var((0, 1, 2), keepdims=True) + 1e-5)


def layer_norm(x, scale):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-6) * scale


def forward(params, images):
    x = jax.lax.conv_general_dilated(images, params["conv"], (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    x = jax.lax.reduce_window(jax.nn.relu(x), -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = jax.nn.gelu(x.reshape(x.shape[0], -1) @ params["dense"] + params["bias"])
    return layer_norm(x, params["scale"]) @ params["head"]


def loss_of(params, images, labels):
    logits = forward(params, images)
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()


@jax.jit
def train_step(params, moments, step, images, labels):
    loss, grads = jax.value_and_grad(loss_of)(params, images, labels)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], grads)
    second = jax.tree.map(lambda m, g: 0.99 * m + 0.01 * g * g, moments[1], grads)
    params = jax.tree.map(lambda p, m, v: p - 0.01 * m / (1 - 0.9 ** (step + 1)) / (jnp.sqrt(v) + 1e-6), params, first, second)
    return params, (first, second), loss


@functools.partial(jax.jit, static_argnums=3)
def train_many(params, images, labels, steps):
    def body(p, _):
        loss, grads = jax.value_and_grad(loss_of)(p, images, labels)
        return jax.tree.map(lambda a, g: a - 0.05 * g, p, grads), loss
    return jax.lax.scan(body, params, None, length=steps)


@jax.jit
def clip_norm(tree):
    norm = jnp.sqrt(sum(jnp.vdot(x, x) for x in jax.tree.leaves(tree)))
    return jax.tree.map(lambda x: x * jnp.minimum(1.0, 1.0 / norm), tree), norm


@jax.jit
def eval_step(params, images, labels):
    logits = forward(params, images)
    return logits, (logits.argmax(-1) == labels).mean()


@jax.jit
def eval_bf16(params, images):
    return forward(jax.tree.map(lambda x: x.astype(jnp.bfloat16), params), images.astype(jnp.bfloat16)).astype(jnp.float32)


@jax.jit
def confusion(logits, labels):
    return jnp.zeros((CLASSES, CLASSES), jnp.int32).at[labels, logits.argmax(-1)].add(1)


@jax.jit
def top_five(logits, labels):
    return (jax.lax.top_k(logits, 5)[1] == labels[:, None]).any(-1).mean()


@jax.jit
def calibration(logits):
    return jnp.quantile(jax.nn.softmax(logits).max(-1), jnp.array([0.1, 0.5, 0.9]))


@jax.jit
def area_under_curve(logits, labels):
    order = jnp.argsort(-logits[:, 0])
    hits = jnp.cumsum((labels == 0)[order])
    return hits.sum() / jnp.maximum(hits[-1] * labels.size, 1)


@jax.jit
def learning_rate(step):
    return jax.lax.cond(step < 100, lambda s: 1e-3 * s / 100, lambda s: 1e-3 * (0.5 + 0.5 * jnp.cos(s / 1000)), step.astype(jnp.float32))


@jax.jit
def moving_average(old, new):
    return jax.tree.map(lambda a, b: a * 0.999 + b * 0.001, old, new)


@jax.jit
def attention(q, k, v):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 4
    mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(jnp.where(mask, scores, -1e9)), v)


@jax.jit
def attention_grad(q, k, v):
    return jax.grad(lambda *a: attention(*a).sum(), argnums=(0, 1, 2))(q, k, v)


@jax.jit
def embed(params, tokens):
    return params["table"][tokens].mean(1)


@jax.jit
def recurrent(params, tokens):
    def cell(h, x):
        h = jnp.tanh(h @ params["dense"][:WIDTH] + x)
        return h, h.sum()
    return jax.lax.scan(cell, jnp.zeros((tokens.shape[0], WIDTH)), params["table"][tokens].swapaxes(0, 1))


@jax.jit
def greedy(params, token):
    def step(state):
        n, t, out = state
        t = (params["table"] @ params["table"][t]).argmax()
        return n + 1, t, out.at[n].set(t)
    return jax.lax.while_loop(lambda s: (s[0] < 8) & (s[1] != 0), step, (0, token, jnp.zeros(8, jnp.int32)))[2]


@jax.jit
def power_iteration(matrix):
    return jax.lax.fori_loop(0, 20, lambda _, v: matrix @ v / jnp.linalg.norm(matrix @ v), jnp.ones(matrix.shape[0]))


@jax.jit
def dropout(key, x):
    return jnp.where(jax.random.bernoulli(key, 0.8, x.shape), x / 0.8, 0)


@jax.jit
def quantise(x):
    scale = jnp.abs(x).max() / 127
    return jnp.clip(jnp.round(x / scale), -127, 127).astype(jnp.int8), scale


@jax.jit
def int8_product(a, b):
    return jax.lax.dot(a, b, preferred_element_type=jnp.int32)


@jax.jit
def spectrum(x):
    return jnp.abs(jnp.fft.rfft(x))


@jax.jit
def blur(images):
    return sum(jnp.roll(images, n, axis=1) for n in (-1, 0, 1)) / 3


@jax.jit
def unique_counts(labels):
    return jax.ops.segment_sum(jnp.ones_like(labels), labels, CLASSES)


def main():
    key = jax.random.key(0)
    params, (images, labels) = init_params(key), make_batch(key)
    moments = init_moments(params)
    images = normalise(augment(key, images))
    for step in range(2):
        params, moments, loss = train_step(params, moments, step, images, labels)
    averaged = moving_average(params, train_many(params, images, labels, 4)[0])
    clip_norm(moments[0])
    logits, accuracy = eval_step(averaged, images, labels)
    eval_bf16(params, images), confusion(logits, labels), top_five(logits, labels), calibration(logits), area_under_curve(logits, labels)
    learning_rate(jnp.array(7)), unique_counts(labels), blur(images), spectrum(images[:, :, 0, 0]), dropout(key, logits)
    q = jax.random.normal(key, (2, 4, 16, 16))
    attention(q, q, q), attention_grad(q, q, q)
    tokens = jnp.arange(24).reshape(2, 12)
    embed(params, tokens), recurrent(params, tokens), greedy(params, jnp.array(3)), power_iteration(params["dense"][:WIDTH])
    whole, _ = quantise(params["head"].T)
    print(f"loss {loss:.4f}, accuracy {accuracy:.3f}, int8 {int8_product(whole, whole.T).sum()}")


if __name__ == "__main__":
    main()
