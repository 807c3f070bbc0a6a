#!/usr/bin/env python3
"""Has XLA compile many small modules in a few processes, ten times faster than `xla.py compile` for each:

  ORACLE_PYTHON oracle_compile.py DUMPDIR [--flags "--xla_…"] [--jobs 2] [--backend cpu] FILE…

DUMPDIR/0, DUMPDIR/1 … (one for each job) hold the dumps of all modules, as `agreement.py` takes them. A module that ends
the compiler's process is named and left out; so is one that it refuses."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import threading

ORACLE = pathlib.Path(__file__).resolve().parents[4] / "shared" / "oracle"


def child(partitions, backend):
    sys.path.insert(0, str(ORACLE))
    import xla

    jax = xla.quiet_jax()
    devices = jax.devices()[:partitions]
    from jaxlib import _jax

    if backend == "gpu":
        devices = xla.gpu_devices(str(ORACLE / "h200.pbtxt"), partitions)
    for line in sys.stdin:
        try:
            module = xla.as_mlir(line.strip())
            client = devices[0].client
            compiled = client.compile if backend == "gpu" else client.compile_and_load
            compiled(module, _jax.DeviceList(tuple(devices)), xla.options_for(devices))
            answer = ""
        except Exception as e:
            answer = str(e)[:300] or "refused"
        print(json.dumps(answer), flush=True)


def work(folder, files, flags, partitions, backend):
    flags = ["--xla_dump_hlo_pass_re=.*", "--xla_dump_module_metadata=true", "--xla_gpu_autotune_level=0",
             "--xla_dump_large_constants=true"] + flags.split()
    if backend == "cpu":
        flags.append(f"--xla_force_host_platform_device_count={partitions}")
    process, runs = None, 0
    for file in files:
        if process is None:
            # A new process numbers its modules from 1: its dumps go into a folder of their own.
            env = dict(os.environ, XLA_FLAGS=" ".join(flags + [f"--xla_dump_to={folder}_{runs}"]))
            runs += 1
            process = subprocess.Popen([sys.executable, __file__, "--child", str(partitions), backend], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
        try:
            process.stdin.write(f"{file}\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            print(f"{file}: ended the compiler", flush=True)
            process.kill()
            process = None
        elif json.loads(line):
            print(f"{file}: {json.loads(line)}", flush=True)
    if process:
        process.stdin.close()
        process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--flags", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--backend", choices=["gpu", "cpu"], default="gpu", help="cpu: its own pipeline, with some passes more")
    args = parser.parse_args()
    pathlib.Path(args.dump).mkdir(parents=True, exist_ok=True)
    threads = [threading.Thread(target=work, args=(f"{args.dump}/{n}", args.files[n :: args.jobs], args.flags, args.partitions, args.backend))
               for n in range(args.jobs)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(int(sys.argv[2]), sys.argv[3])
    else:
        main()
