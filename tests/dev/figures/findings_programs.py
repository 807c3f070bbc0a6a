"""Six programs as owners of models write them, two inefficiencies planted in each: what tests/dev/figures/findings_shows.py compiles and asks about.

A line that ends in `# planted: KIND` is the one that a finding should name. Written before the tool was run on any of them."""
import jax
import jax.numpy as jnp


def shaped(dtype, *dims):
    return jax.ShapeDtypeStruct(dims, dtype)


bf16, f32, s32 = jnp.bfloat16, jnp.float32, jnp.int32


def language_model(tokens, table, up, down, head):
    """A block and a head in bf16."""
    one_hot = jax.nn.one_hot(tokens, table.shape[0], dtype=table.dtype)
    x = one_hot @ table  # planted: one-hot product in place of a lookup
    x = x + jax.nn.gelu(x @ up) @ down
    mean = x.astype(f32).mean(-1, keepdims=True)
    x = (x - mean).astype(bf16)
    return x.astype(f32) @ head.astype(f32)  # planted: f32 product in a bf16 model


def cached_attention(cache, position, query, key, out):
    """One step of decoding, its cache donated; eight queries share a head of keys."""
    cache = cache.astype(f32)
    cache = jax.lax.dynamic_update_slice(cache, key[:, None], (0, position, 0, 0))  # planted: a donated cache comes back in another type
    shared = jnp.repeat(cache, 8, axis=2)  # planted: a broadcast written before its product
    scores = jnp.einsum("bhd,bshd->bhs", query, shared) * 0.125
    scores = jnp.where(jnp.arange(cache.shape[1]) <= position, scores, -1e9)
    attended = jnp.einsum("bhs,bshd->bhd", jax.nn.softmax(scores), shared)
    return cache, attended.reshape(attended.shape[0], -1) @ out


def recurrent(frames, into, state, bias):
    """A gated recurrent layer over frames that come batch first."""
    steps = jnp.swapaxes(frames, 0, 1)  # planted: an argument transposed in each call

    def step(hidden, frame):
        from_frame = frame @ into  # planted: a product that needs no state, step by step
        gate, new = jnp.split(from_frame + hidden @ state + bias, 2, axis=-1)
        hidden = jax.nn.sigmoid(gate) * hidden + jax.nn.sigmoid(-gate) * jnp.tanh(new)
        return hidden, hidden.mean(-1)

    first = jnp.zeros((frames.shape[0], state.shape[0]), frames.dtype)
    return jax.lax.scan(step, first, steps)


def image_loss(weights, images, labels):
    x = jax.lax.conv_general_dilated(images, weights["first"], (2, 2), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"))  # planted: channels in front
    x = jax.nn.relu(x)
    x = jax.lax.conv_general_dilated(x, weights["second"], (2, 2), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"))
    logits = jax.nn.relu(x).mean((2, 3)) @ weights["head"]
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()


def image_training(weights, momenta, images, labels):
    """A step of training with momenta."""
    grads = jax.grad(image_loss)(weights, images, labels)
    momenta = jax.tree.map(lambda m, g: 0.9 * m + g, momenta, grads)  # planted: state that is not donated
    return jax.tree.map(lambda w, m: w - 0.1 * m, weights, momenta), momenta


def retrieval(queries, documents, popularity):
    """The ten nearest documents, and the ten that are liked most."""
    distances = ((queries[:, None, :] - documents[None, :, :]) ** 2).sum(-1)  # planted: distances by differences in place of a product
    best = jnp.sort(popularity - distances, axis=-1)[:, -10:]  # planted: a sort in place of top_k
    return best


def graph_network(nodes, senders, receivers, weight):
    """Three rounds of messages, weighed by a softmax."""
    start = nodes

    def turn(_, state):
        origin = start[senders]  # planted: a gather of what the loop does not change
        messages = jnp.tanh(state[senders] + origin)
        state = state @ weight
        return state.at[receivers].add(messages)

    nodes = jax.lax.fori_loop(0, 3, turn, nodes)
    weights = jax.nn.softmax(nodes.astype(jnp.float64), axis=-1)  # planted: f64 where f32 would do
    return nodes * weights.astype(f32)


WEIGHTS = {"first": shaped(bf16, 64, 32, 3, 3), "second": shaped(bf16, 128, 64, 3, 3), "head": shaped(bf16, 128, 1000)}

# By name: the function and its arguments' shapes.
PROGRAMS = {
    "language_model": (jax.jit(language_model), [shaped(s32, 4096), shaped(bf16, 32768, 1024), shaped(bf16, 1024, 4096), shaped(bf16, 4096, 1024), shaped(bf16, 1024, 32768)]),
    "cached_attention": (jax.jit(cached_attention, donate_argnums=0), [shaped(bf16, 16, 4096, 4, 64), shaped(s32), shaped(f32, 16, 32, 64), shaped(f32, 16, 4, 64), shaped(f32, 2048, 2048)]),
    "recurrent": (jax.jit(recurrent), [shaped(f32, 128, 512, 1024), shaped(f32, 1024, 2048), shaped(f32, 1024, 2048), shaped(f32, 2048)]),
    "image_training": (jax.jit(image_training), [WEIGHTS, WEIGHTS, shaped(bf16, 256, 32, 64, 64), shaped(s32, 256)]),
    "retrieval": (jax.jit(retrieval), [shaped(f32, 512, 128), shaped(f32, 65536, 128), shaped(f32, 65536)]),
    "graph_network": (jax.jit(graph_network), [shaped(f32, 65536, 128), shaped(s32, 1048576), shaped(s32, 1048576), shaped(f32, 128, 128)]),
}

IN_F64 = {"graph_network"}  # compiled with jax_enable_x64
