#!/usr/bin/env python3
"""Four training steps that do not fit a card of 80 GB, compiled for one and never run: what `memory` says of each (peak, the pass that raised it,
the line that fills it), and what its levers come to, foretold, by our passes and by XLA.  The table is that of docs/memory.md.

  memory_shows.py HLO_REPLAY OUT [NAME…]      by an interpreter that has jax: $(../shared/oracle/setup.sh)
"""
import json
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp


def sds(*dims, dtype=jnp.bfloat16):
    return jax.ShapeDtypeStruct(dims, dtype)


# 1: attention that writes its scores: ten layers of [8, 32, 4096, 4096].
def attention_layer(w, x):
    b, s, d = x.shape
    q, k, v = (jnp.einsum("bsd,dhk->bhsk", x, w[n]) for n in "qkv")
    scores = jnp.einsum("bhsk,bhtk->bhst", q, k) / 8.0
    scores = jnp.where(jnp.tril(jnp.ones((s, s), bool)), scores, -1e9)
    weights = jax.nn.softmax(scores.astype(jnp.float32), axis=-1).astype(x.dtype)
    mixed = jnp.einsum("bhst,bhtk->bhsk", weights, v)
    return x + jnp.einsum("bhsk,hkd->bsd", mixed, w["o"])


def attention(ws, x):
    def loss(ws):
        y = x
        for w in ws:
            y = attention_layer(w, y)
        return (y.astype(jnp.float32) ** 2).mean()
    grads = jax.grad(loss)(ws)
    return jax.tree.map(lambda w, g: w - 1e-3 * g, ws, grads)


# 2: Adam on 4.7 billion numbers, nothing donated.
def adam(state, grads):
    def one(p, m, v, g):
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        return p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v
    return jax.tree.map(one, *state, grads)


# 3: a loss over a vocabulary of 256,000.
def vocabulary(table, hidden, labels):
    def loss(table, hidden):
        logits = (hidden @ table.T).astype(jnp.float32)
        logits = 30.0 * jnp.tanh(logits / 30.0)
        logp = jax.nn.log_softmax(logits, axis=-1)
        return -jnp.take_along_axis(logp, labels[:, None], axis=-1).mean()
    return jax.value_and_grad(loss, argnums=(0, 1))(table, hidden)


# 4: a gated feed-forward network, twelve layers, whose activations are kept for the backward pass.
def gated_layer(w, x):
    h = x @ w["in"]
    g = x @ w["gate"]
    return x + (jax.nn.silu(g) * jax.nn.gelu(h)) @ w["out"]


def gated(ws, x):
    def loss(ws):
        y = x
        for w in ws:
            y = gated_layer(w, y)
        return (y.astype(jnp.float32) ** 2).mean()
    grads = jax.grad(loss)(ws)
    return jax.tree.map(lambda w, g: w - 1e-3 * g, ws, grads)


D = 2048
LAYER = {"q": sds(D, 32, 64), "k": sds(D, 32, 64), "v": sds(D, 32, 64), "o": sds(32, 64, D)}
BIG = [sds(28672, 8192, dtype=jnp.float32) for _ in range(20)]
GATED = {"in": sds(4096, 16384), "gate": sds(4096, 16384), "out": sds(16384, 4096)}
CARDS = {"gated": "A100"}  # on an H100 XLA itself makes it fit
PROGRAMS = {
    "attention": (attention, ([LAYER] * 10, sds(8, 4096, D))),
    "adam": (adam, (([*BIG], [*BIG], [*BIG]), [*BIG])),
    "vocabulary": (vocabulary, (sds(256000, 2048), sds(36864, 2048), sds(36864, dtype=jnp.int32))),
    "gated": (gated, ([GATED] * 12, sds(65536, 4096))),
}

def ask(tool, *args):
    done = subprocess.run([tool, *map(str, args), "--json"], capture_output=True, text=True)
    return json.loads(done.stdout) if done.stdout.startswith("{") else sys.exit(done.stderr)


def gib(count):
    return f"{count / 2**30:.1f}"


def show(tool, out, name, function, args):
    low, dump = out / f"{name}.pb", out / name
    low.write_bytes(jax.jit(function).lower(*args).compiler_ir("hlo").as_serialized_hlo_module_proto())
    engine = [f"--engine=installed:{sys.executable}", f"--target=gpu:{CARDS.get(name, 'H100')}"]
    ask(tool, "replay", low, *engine, "-o", dump, "--force")
    m = ask(tool, "memory", dump, "--stages")["modules"][0]
    rises = [c for c in m["stages"]["changes"] if c["after_bytes"] > c["before_bytes"] * 1.005]
    line = next(g for g in m["alive_by"] if not g["key"].startswith("("))
    rows = {}
    for by, more in (("ours", []), ("xla", engine)):
        tried = ask(tool, "memory", dump, "--try", *more)["modules"][0]["tried"]
        for lever in tried["levers"]:
            if lever["compiled"]:
                rows.setdefault(lever["what"], {})[by] = (lever["allocated_before"], lever["allocated_after"], lever["foretold_bytes"], lever["helps"])
    print(f"{name}: {gib(m['allocated_bytes'])} GiB allocated, {gib(m['peak_bytes'])} alive at {m['peak_at']}; {line['key']} {gib(line['bytes'])} GiB")
    for c in [c for c in m["stages"]["changes"] if c["pass"] == "rematerialization"] + rises[:1]:
        print(f"  {c['pass']}: {gib(c['before_bytes'])} to {gib(c['after_bytes'])}{' (estimated)' if c['estimate'] else ''}")
    for what, by in sorted(rows.items(), key=lambda r: r[1].get("xla", (0, 1 << 62))[1]):
        words = [f"{who} {gib(before)} to {gib(after)}" for who, (before, after, _, _) in by.items()]
        foretold = next(iter(by.values()))[2]
        print(f"  {what[:110]}: foretold {'?' if foretold is None else gib(foretold)} less at most; {'; '.join(words)}")


if __name__ == "__main__":
    tool, out = sys.argv[1], pathlib.Path(sys.argv[2])
    out.mkdir(exist_ok=True)
    for name, (function, args) in PROGRAMS.items():
        if len(sys.argv) < 4 or name in sys.argv[3:]:
            show(tool, out, name, function, args)
