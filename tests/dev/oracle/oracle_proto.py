#!/usr/bin/env python3
"""Has XLA run passes on a stage as its .hlo.pb has it, with layouts, bitcasts and fusions, which a way through StableHLO would lose:

  ORACLE_PYTHON oracle_proto.py DUMPDIR [--only PASS[,PASS…]] [--flags "--xla_…"] [--partitions N] [--memory BYTES] FILE.hlo.pb…

Each module is handed to the CUDA plugin by PJRT's C interface (format "hlo"; xla/pjrt/c/pjrt_c_api.h), for the described GPU of the oracle.
DUMPDIR/N holds the dump of file N, as agreement.py takes it, stages as text and .hlo.pb: what XLA's own pass makes of the very file that
a tool is given. Here an array's users stand in the order in which a reader of the file meets them, for XLA as for the tool; inside of the run
that wrote the file they stood in another, which no file tells. A file whose process ends, or that is refused, is named; exit code 1 then."""
import argparse
import concurrent.futures
import ctypes
import os
import pathlib
import re
import subprocess
import sys

ORACLE = pathlib.Path(__file__).resolve().parents[4] / "shared" / "oracle"
# Places of the functions in PJRT_Api, whose order is kept from release to release, behind its size, its extensions and its version.
FUNCTIONS_AT = 16 + 24
ERROR_MESSAGE, PLUGIN_INITIALIZE, TOPOLOGY_CREATE, COMPILE = 1, 3, 82, 89
NAMED_STRING = 0


def arguments(**fields):
    """A structure of the interface, zero but for `fields`: all of them are a size, a chain of extensions and words."""
    names = ["struct_size", "extension_start"] + list(fields)
    kind = type("Arguments", (ctypes.Structure,), {"_fields_": [(name, ctypes.c_void_p if name != "struct_size" else ctypes.c_size_t) for name in names]})
    made = kind()
    made.struct_size = ctypes.sizeof(kind)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


class Plugin:
    def __init__(self, path):
        self.library = ctypes.CDLL(str(path))
        self.library.GetPjrtApi.restype = ctypes.c_void_p
        self.api = self.library.GetPjrtApi()
        self.call(PLUGIN_INITIALIZE, arguments())

    def function(self, index, result):
        at = ctypes.c_void_p.from_address(self.api + FUNCTIONS_AT + 8 * index).value
        return ctypes.CFUNCTYPE(result, ctypes.c_void_p)(at)

    def call(self, index, args):
        error = self.function(index, ctypes.c_void_p)(ctypes.addressof(args))
        if not error:
            return args
        asked = arguments(error=error, message=None, message_size=None)
        self.function(ERROR_MESSAGE, None)(ctypes.addressof(asked))
        raise RuntimeError(ctypes.string_at(asked.message, asked.message_size).decode(errors="replace"))

    def topology(self, target, partitions):
        kept, words = [], {"target_config": target, "topology": f"1x1x{partitions}"}

        class Named(ctypes.Structure):
            _fields_ = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p), ("name", ctypes.c_char_p), ("name_size", ctypes.c_size_t),
                        ("kind", ctypes.c_int), ("value", ctypes.c_char_p), ("value_size", ctypes.c_size_t)]

        options = (Named * len(words))()
        for option, (name, word) in zip(options, words.items()):
            kept += [name.encode(), word.encode()]
            option.struct_size, option.name, option.name_size = ctypes.sizeof(Named), kept[-2], len(kept[-2])
            option.kind, option.value, option.value_size = NAMED_STRING, kept[-1], len(kept[-1])
        return self.call(TOPOLOGY_CREATE, arguments(topology_name=None, topology_name_size=0, create_options=ctypes.addressof(options), num_options=len(words), topology=None)).topology

    def compile(self, topology, module, options):
        code, form = ctypes.create_string_buffer(module, len(module)), ctypes.create_string_buffer(b"hlo")
        program = arguments(code=ctypes.addressof(code), code_size=len(module), format=ctypes.addressof(form), format_size=3)
        held = ctypes.create_string_buffer(options, len(options))
        self.call(COMPILE, arguments(topology=topology, program=ctypes.addressof(program), compile_options=ctypes.addressof(held), compile_options_size=len(options), client=None, executable=None))


def module_of(data):
    """The HloModuleProto of a dump, which holds an HloProto: field 1."""
    if data[:1] != b"\x0a":
        return data
    size, shift, at = 0, 0, 1
    while True:
        size |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            break
    inner = data[at : at + size]
    return inner if at + size <= len(data) and inner[:1] == b"\x0a" and len(inner) > 8 else data


def child(file, partitions, memory):
    sys.path.insert(0, str(ORACLE))
    import jax_plugins.xla_cuda13 as cuda
    import xla

    plugin = Plugin(pathlib.Path(cuda.__file__).parent / "xla_cuda_plugin.so")
    target = (ORACLE / "h200.pbtxt").read_text()
    if memory:
        target = re.sub(r"device_memory_size: \d+", f"device_memory_size: {memory}", target)
    topology = plugin.topology(target, partitions)

    class Device:
        id = 0

    options = xla.options_for([Device] * 1 if partitions == 1 else [type("Device", (), {"id": n}) for n in range(partitions)])
    plugin.compile(topology, module_of(pathlib.Path(file).read_bytes()), options.SerializeAsString())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump", type=pathlib.Path)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--only", help="without it: the whole pipeline")
    parser.add_argument("--flags", default="")
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--memory", type=int, default=0, help="bytes of the card, where not the H200's")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()

    def run(numbered):
        number, file = numbered
        folder = args.dump / f"{number:03}"
        flags = ["--xla_dump_hlo_pass_re=.*", "--xla_dump_hlo_as_proto", "--xla_dump_hlo_as_text", "--xla_dump_module_metadata=true", "--xla_gpu_autotune_level=0",
                 "--xla_dump_large_constants=true", f"--xla_dump_to={folder}"] + args.flags.split()
        flags += [f"--xla_enable_hlo_passes_only={args.only}"] if args.only else []
        done = subprocess.run([sys.executable, __file__, "--child", file, str(args.partitions), str(args.memory)], env=dict(os.environ, XLA_FLAGS=" ".join(flags)), capture_output=True, text=True)
        return file, done.returncode, done.stderr.strip().split("\n")[-1][:300]

    bad = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for file, code, said in pool.map(run, enumerate(args.files)):
            if code:
                bad += 1
                print(f"{file}: {said or f'ended the compiler ({code})'}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        sys.exit(main())
