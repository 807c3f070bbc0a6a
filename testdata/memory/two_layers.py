"""A training step of two gated layers; of a dump of it, compiled by jaxlib 0.10.2 for an A100 (xla.py compile --backend gpu), some files lie here."""
import jax
import jax.numpy as jnp


def layer(w, x):
    h = x @ w["in"]
    g = x @ w["gate"]
    return x + (jax.nn.silu(g) * jax.nn.gelu(h)) @ w["out"]


def train_step(ws, x):
    def loss(ws):
        y = x
        for w in ws:
            y = layer(w, y)
        return (y.astype(jnp.float32) ** 2).mean()
    grads = jax.grad(loss)(ws)
    return jax.tree.map(lambda w, g: w - 1e-3 * g, ws, grads)


def shape(*dims):
    return jax.ShapeDtypeStruct(dims, jnp.bfloat16)


W = {"in": shape(512, 2048), "gate": shape(512, 2048), "out": shape(2048, 512)}
if __name__ == "__main__":
    import sys
    open(sys.argv[1], "wb").write(jax.jit(train_step).lower([W, W], shape(8192, 512)).compiler_ir("hlo").as_serialized_hlo_module_proto())
