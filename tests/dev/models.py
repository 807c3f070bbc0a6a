#!/usr/bin/env python3
"""jax programs of many kinds (programs/*.py) as HLO text, for agreement beside the dumps: JAX_PYTHON models.py OUT_DIR [WORD…]

Each whose name or file has one of the words is traced and lowered (nothing is compiled or run) and written to OUT_DIR/NAME.hlo,
one that is sharded over N devices to OUT_DIR/devices_N/NAME.hlo. `xla.py compile FILE --backend gpu --dump DIR/NAME [--partitions N]
--flags "--xla_dump_hlo_as_proto --xla_dump_hlo_as_text"` makes the dumps that final_all.py takes."""
import importlib
import os
import pathlib
import sys

os.environ['JAX_PLATFORMS'] = 'cpu'
os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=8'

import jax  # noqa: E402

from programs.common import PROGRAMS  # noqa: E402

jax.config.update('jax_use_shardy_partitioner', False)  # HLO has no other form of shardings that it partitions by itself


def lowered(fn, args, x64, platform):
    with jax.enable_x64(x64):
        return jax.jit(fn).trace(*args).lower(lowering_platforms=(platform,))


def devices(args):
    meshes = [leaf.sharding.mesh for leaf in jax.tree.leaves(args) if getattr(leaf, 'sharding', None)]
    return meshes[0].size if meshes else 1


def main():
    out, words = pathlib.Path(sys.argv[1]), sys.argv[2:]
    kind_of = {}
    for file in sorted((pathlib.Path(__file__).parent / 'programs').glob('*.py')):
        importlib.import_module(f'programs.{file.stem}')
        kind_of.update((name, file.stem) for name in PROGRAMS.keys() - kind_of.keys())
    failed = False
    for name, (fn, args, x64, platform) in PROGRAMS.items():
        if words and not any(word in f'{kind_of[name]} {name}' for word in words):
            continue
        try:
            text = lowered(fn, args, x64, platform).compiler_ir('hlo').as_hlo_text(True)
        except Exception as e:  # a program that this jax cannot lower
            print(name, 'ERR', str(e)[:200])
            failed = True
            continue
        folder = out if devices(args) == 1 else out / f'devices_{devices(args)}'
        folder.mkdir(exist_ok=True, parents=True)
        (folder / f'{name}.hlo').write_text(text)
        print(name, text.count('\n'))
    sys.exit(failed)


main()
