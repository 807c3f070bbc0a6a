"""The gradient of a scan of six layers, whose stacks `memory --try` computes again. The module next to it is jax 0.12's own of this."""
import jax
import jax.numpy as jnp


def layer(c, w):
    c = c + jnp.tanh(jax.nn.softmax(c @ w[0]) @ w[1])
    return c, jnp.sum(c)


def loss(ws, x):
    y, each = jax.lax.scan(layer, x, ws)
    return jnp.sum(y * y) + jnp.sum(each)


if __name__ == "__main__":
    shapes = [jax.ShapeDtypeStruct(dims, jnp.float32) for dims in ((6, 32, 64), (6, 64, 32), (128, 32))]
    jax.jit(jax.grad(loss)).lower((shapes[0], shapes[1]), shapes[2]).compile()  # XLA_FLAGS=--xla_dump_to=…
