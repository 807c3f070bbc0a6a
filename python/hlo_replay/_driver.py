"""What hlo-replay asks of the XLA that a user has installed; run by the interpreter that has it, as a child:

    python driver.py QUESTION.json ANSWER.json PHASE

QUESTION: {"do": "compile" | "convert" | "run" | "flags" | "which", "input", "plain", "form": "hlo" | "proto" | "stablehlo", "platform": "cpu" | "gpu" | "tpu",
           "target": text of a GPU's description, or a TPU's topology, "partitions", "output", "inputs", "runs"}
ANSWER:   {"ok": true, "jaxlib", "python", "device", "platform_version", "seconds": {…}} or {"ok": false, "kind", "message", "hint"}
PHASE:    a file with one line that says what is going on, for the last words of a child that aborts.

Needs jaxlib alone, `run` jax as well. XLA_FLAGS are set by who starts it. The program embeds this file (CMake), the package ships it.
"""
import glob
import json
import os
import re
import sys
import time

OLDEST = (0, 4, 35)  # the first with described devices as they are used here


class Refused(Exception):
    def __init__(self, kind, message, hint=""):
        super().__init__(message)
        self.kind, self.hint = kind, hint


def phase(path, what):
    with open(path, "w", encoding="utf-8") as out:
        out.write(what)


class Xla:
    """The parts of jaxlib that are needed, under the names that its release has for them."""

    def __init__(self):
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
        try:
            import jaxlib
            from jaxlib.version import __version__ as version
        except ImportError as error:
            raise Refused("no-jaxlib", f"this Python has no jaxlib ({error})", "pip install jax, or name another: --engine=installed:PYTHON, or :VERSION for a release from PyPI")
        self.version, self.folder = version, os.path.dirname(jaxlib.__file__)
        number = tuple(int(part) for part in version.split(".")[:3] if part.isdigit())
        if number < OLDEST:
            raise Refused("too-old", f"jaxlib {version} is too old: {'.'.join(map(str, OLDEST))} is the first that this works with")
        try:
            from jaxlib import xla_client
            from jaxlib.mlir import ir
        except ImportError as error:
            raise Refused("broken", f"jaxlib {version} cannot be loaded: {error}")
        self.client, self.ir = xla_client, ir
        try:
            from jaxlib import _hlo, _jax

            self.core, self.hlo = _jax, _hlo
        except ImportError:  # one extension held both until 0.6
            self.core = self.hlo = xla_client._xla
        missing = [name for holder, name in ((self.core, "mlir"), (self.core, "DeviceList"), (xla_client, "make_c_api_device_topology"), (self.hlo, "XlaComputation")) if not hasattr(holder, name)]
        if missing:
            raise Refused("too-old", f"jaxlib {version} has no {', '.join(missing)}: it is too old, or too new for this")

    def from_hlo(self, proto):
        """StableHLO of a serialized HloModuleProto. Releases up to 0.5.3 are read through MHLO, in two steps."""
        steps = self.core.mlir
        if hasattr(steps, "hlo_to_stablehlo"):
            return steps.hlo_to_stablehlo(proto)
        if not hasattr(steps, "xla_computation_to_mlir_module"):
            raise Refused("too-old", f"jaxlib {self.version} takes no HLO into StableHLO; a file of StableHLO it compiles")
        made = steps.xla_computation_to_mlir_module(self.hlo.XlaComputation(proto))
        made = made.encode() if isinstance(made, str) else made
        return steps.mhlo_to_stablehlo(made) if hasattr(steps, "mhlo_to_stablehlo") else made

    def context(self):
        """An MLIR context that knows what XLA's compilers take."""
        context = self.ir.Context()
        from jaxlib.mlir.dialects import chlo, stablehlo

        stablehlo.register_dialect(context)
        chlo.register_dialect(context)
        for name, register in (("sdy", "register_dialect"), ("mhlo", "register_mhlo_dialect")):
            try:
                module = __import__("jaxlib.mlir.dialects." + name, fromlist=[name])
                getattr(module, register)(context)
            except (ImportError, AttributeError):
                pass  # a release without it has no programs with it
        registry = self.ir.DialectRegistry()
        from jaxlib.mlir import _mlir_libs

        try:
            from jaxlib.mlir._mlir_libs import _jax_mlir_ext as dialects
        except ImportError:
            from jaxlib.mlir._mlir_libs import register_jax_dialects as dialects
        dialects.register_dialects(registry) if hasattr(dialects, "register_dialects") else None
        context.append_dialect_registry(registry)
        if hasattr(_mlir_libs, "get_dialect_registry"):
            context.append_dialect_registry(_mlir_libs.get_dialect_registry())
        context.load_all_available_dialects()
        return context

    def parse(self, text):
        with self.context() as context, self.ir.Location.unknown(context):
            return self.ir.Module.parse(text)

    def bytecode(self, module):
        import io

        out = io.BytesIO()
        module.operation.write_bytecode(file=out)
        return out.getvalue()


def read(path):
    with open(path, "rb") as file:
        return file.read()


def hlo_proto(xla, question):
    data = read(question["input"])
    if question["form"] == "hlo":
        return xla.hlo.hlo_module_from_text(data.decode()).as_serialized_hlo_module_proto()
    return data


def stablehlo(xla, question):
    """The module as MLIR, in memory. HLO goes through XLA's own translation."""
    if question["form"] != "stablehlo":
        try:
            made = xla.from_hlo(hlo_proto(xla, question))
        except Exception as first:
            # Older releases take no numbers of instructions as XLA writes them since 2025, and no newer metadata.
            if not question.get("plain"):
                raise
            try:
                proto = xla.hlo.hlo_module_from_text(read(question["plain"]).decode()).as_serialized_hlo_module_proto()
                made = xla.from_hlo(proto)
            except Exception:
                raise first
        return xla.parse(made)
    data = read(question["input"])
    try:
        if data.startswith(b"ML\xefR\rStableHLO"):  # what jax.export writes: a form that lasts over releases
            from jaxlib.mlir.dialects import stablehlo as dialect

            with xla.context() as context:
                return dialect.deserialize_portable_artifact(context, data)
        if not data.startswith(b"ML\xefR"):
            data = data.decode()
        return xla.parse(data)
    except UnicodeDecodeError as error:
        raise Refused("module", f"neither StableHLO's text nor its bytecode: {error}")


def plugin(xla, platform):
    """The shared library that has the compiler for a device that is not there."""
    if platform == "tpu":
        # Read when it is loaded: it asks no server then, and shares the machine with others that only compile.
        os.environ.update(TPU_SKIP_MDS_QUERY="1", TPU_ACCELERATOR_TYPE="v5litepod-4", TPU_WORKER_HOSTNAMES="localhost", TPU_WORKER_ID="0", ALLOW_MULTIPLE_LIBTPU_LOAD="1")
        try:
            import libtpu

            return "tpu", libtpu.get_library_path()
        except ImportError:
            raise Refused("no-plugin", "this Python has no libtpu, which has the compiler for TPUs", "pip install libtpu (600 MB) next to that jaxlib")
    found = []
    for folder in [os.path.dirname(xla.folder), *sys.path]:
        found += sorted(glob.glob(os.path.join(folder, "jax_plugins", "xla_cuda*", "xla_cuda_plugin.so")))
    if not found:
        raise Refused("no-plugin", "this Python has no CUDA plugin of jax, which has the compiler for GPUs", f"pip install --no-deps jax-cuda12-pjrt=={xla.version} next to that jaxlib; no GPU and no CUDA is needed")
    return "cuda", found[-1]


def fields_of(text):
    """The fields of a message in protobuf's text form, as they are, each with its name."""
    at, out = 0, []
    text = re.sub(r"(?m)^\s*#.*\n", "", text)
    while match := re.compile(r"\s*(\w+)\s*:?\s*").match(text, at):
        start, end = match.start(1), match.end()
        if text[end : end + 1] == "{":
            depth = 0
            for found in re.compile(r"[{}]|\"(?:[^\"\\\\]|\\\\.)*\"").finditer(text, end):
                depth += {"{": 1, "}": -1}.get(found[0], 0)
                if depth == 0:
                    break
            end = found.end()
        else:
            value = re.compile(r"\"(?:[^\"\\\\]|\\\\.)*\"|[^\s{}]+").match(text, end)
            if not value:
                break
            end = value.end()
        out.append((match[1], text[start:end]))
        at = end
    return out


def without_unknown_fields(text, parses):
    """A description of a GPU without what an older release has no field for, and the names of that."""
    gone = []

    def kept(part, wrap):
        fields = []
        for name, field in fields_of(part):
            if not parses(wrap(field)):
                inside = field[field.index("{") + 1 : field.rindex("}")] if "{" in field else ""
                if inside and parses(wrap(name + " {}")):
                    fields.append(name + " {\n" + kept(inside, lambda f, name=name: wrap(name + " {" + f + "}")) + "\n}")
                else:
                    gone.append(name)
            else:
                fields.append(field)
        return "\n".join(fields)

    return kept(text, lambda field: field), gone


def gpu_topology(xla, loaded, question, count, answer):
    def described(text):
        return xla.client.make_c_api_device_topology(loaded, "", target_config=text, topology=f"1x1x{count}")

    def parses(text):
        try:
            described(text)
        except Exception as error:
            return "Failed to parse" not in str(error)
        return True

    if parses(question["target"]):
        return described(question["target"])
    text, gone = without_unknown_fields(question["target"], parses)
    answer["warnings"].append(f"jaxlib {xla.version} has no field for {', '.join(gone)} of the target's description: left out")
    return described(text)


def devices_of(xla, question, answer):
    """N devices of the platform, described where they are not here, and what compiles for them."""
    count, platform = question["partitions"], question["platform"]
    if platform == "cpu":
        client = xla.client.make_cpu_client()
        devices = client.devices()[:count]
        if len(devices) < count:
            raise Refused("target", f"{count} partitions, and the CPU counts as {len(devices)} devices")
        return devices, getattr(client, "compile_and_load", None) or client.compile
    name, library = plugin(xla, platform)
    loaded = xla.client.load_pjrt_plugin_dynamically(name, library)
    xla.client.initialize_pjrt_plugin(name)
    try:
        if platform == "gpu":
            topology = gpu_topology(xla, loaded, question, count, answer)
        else:
            topology = xla.client.make_c_api_device_topology(loaded, question["target"])
        devices = list(topology._make_compile_only_devices())
    except Exception as error:
        raise Refused("target", f"{'libtpu' if platform == 'tpu' else 'its CUDA plugin'} does not take the target: {error}")
    if len(devices) < count:
        raise Refused("target", f"{count} partitions, and the target has {len(devices)} devices")
    return devices[:count], devices[0].client.compile


def options_for(xla, question, devices):
    import numpy

    options = xla.client.CompileOptions()
    build = options.executable_build_options
    build.num_replicas, build.num_partitions = 1, len(devices)
    options.num_replicas, options.num_partitions = 1, len(devices)
    build.use_spmd_partitioning = len(devices) > 1
    if question.get("shardy") and hasattr(build, "use_shardy_partitioner"):
        build.use_shardy_partitioner = True
    options.device_assignment = build.device_assignment = xla.client.DeviceAssignment.create(numpy.array([[d.id for d in devices]], dtype=numpy.int32))
    return options


def call_compiler(xla, call, module, devices, options):
    """Releases differ in how they take the module, and whether with a list of devices."""
    try:
        return call(module, devices, options)
    except TypeError as error:
        data, first = xla.bytecode(module), error
    for arguments in ((data, devices, options), (data, list(devices), options), (data, options)):
        try:
            return call(*arguments)
        except TypeError:
            pass
    raise first


def compiled(xla, question, say, answer):
    start = time.perf_counter()
    say("taking the module into StableHLO")
    module = stablehlo(xla, question)
    answer["seconds"]["module"] = time.perf_counter() - start
    start = time.perf_counter()
    say("setting up the target")
    devices, compile_call = devices_of(xla, question, answer)
    answer["seconds"]["target"] = time.perf_counter() - start
    answer["device"] = getattr(devices[0], "device_kind", "")
    answer["platform_version"] = str(getattr(devices[0].client, "platform_version", "")).split("\n")[0]
    start = time.perf_counter()
    say("compiling")
    options, some = options_for(xla, question, devices), xla.core.DeviceList(tuple(devices))
    executable = call_compiler(xla, compile_call, module, some, options)
    answer["seconds"]["compile"] = time.perf_counter() - start
    return executable, devices


def run(xla, question, say, answer):
    """Compiled for this CPU and run once. Arrays of types that numpy does not have travel as the unsigned integers of their bits."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    import numpy

    say("importing jax")
    try:
        import jax
    except ImportError as error:
        raise Refused("no-jax", f"results need jax next to jaxlib {xla.version} ({error})", "pip install jax")
    jax.config.update("jax_enable_x64", True)
    device = jax.devices("cpu")[0]
    module = stablehlo(xla, question)
    say("compiling")
    start = time.perf_counter()
    compile_call, options = getattr(device.client, "compile_and_load", None) or device.client.compile, options_for(xla, question, [device])
    executable = call_compiler(xla, compile_call, module, xla.core.DeviceList((device,)), options)
    answer["seconds"]["compile"] = time.perf_counter() - start
    say("running")
    given = numpy.load(question["inputs"], allow_pickle=False)
    buffers = []
    for k, name in enumerate(question["types"]):
        array, wanted = given[f"p{k}"], numpy.dtype(getattr(__import__("ml_dtypes"), name, None) or name)
        buffers.append(jax.device_put(array.view(wanted) if array.dtype != wanted else array, device))
    outputs = executable.execute_sharded(buffers).disassemble_into_single_device_arrays()
    jax.block_until_ready(outputs)
    if question.get("runs"):
        say("timing its runs")
        times = []
        for _ in range(question["runs"]):
            start = time.perf_counter()
            jax.block_until_ready(executable.execute_sharded(buffers).disassemble_into_single_device_arrays())
            times.append(time.perf_counter() - start)
        times.sort()
        answer["seconds"]["run"], answer["seconds"]["run_spread"] = times[len(times) // 2], (times[len(times) * 3 // 4] - times[len(times) // 4]) / 2
    made = {f"o{k}": numpy.asarray(group[0]) for k, group in enumerate(outputs)}
    plain = {k: v.view(f"u{v.dtype.itemsize}") if v.dtype.kind == "V" or v.dtype.name.startswith(("bf", "float8", "float4", "int4", "uint4", "int2", "uint2")) else v for k, v in made.items()}
    numpy.savez(question["output"], **plain)
    import zipfile

    with zipfile.ZipFile(question["output"], "a") as archive:  # what the integers stand for
        archive.writestr("types.json", json.dumps({f"o{k}": name for k, name in enumerate(question["output_types"]) if f"o{k}" in plain and plain[f"o{k}"].dtype != made[f"o{k}"].dtype}))


def varint(data, at):
    value = shift = 0
    while shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise ValueError("no number")


def proto_fields(data, known=range(1, 1 << 29)):
    """(number, value) of a message's fields: numbers as such, all else as bytes. Ends where it is no message any more."""
    at = 0
    try:
        while at < len(data):
            key, at = varint(data, at)
            number, wire = key >> 3, key & 7
            if number not in known or wire not in (0, 1, 2, 5):
                return
            if wire == 0:
                value, at = varint(data, at)
            else:
                size = {1: 8, 5: 4}.get(wire)
                if size is None:
                    size, at = varint(data, at)
                if at + size > len(data):
                    return
                value, at = data[at : at + size], at + size
            yield number, value
    except (IndexError, ValueError):
        return


def flag_names(xla):
    """{field number: (name, type)} of DebugOptions, from the description of xla.proto that every release carries in its library."""
    import mmap

    for library in glob.glob(os.path.join(xla.folder, "*.so*")):
        with open(library, "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                continue
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory:
                at = memory.find(b"\n\rxla/xla.proto")
                described = memory[at : at + (1 << 20)] if at >= 0 else b""
        for number, message in proto_fields(described, range(1, 15)):
            if number == 4 and dict(proto_fields(message)).get(1) == b"DebugOptions":
                fields = [dict(proto_fields(part)) for n, part in proto_fields(message) if n == 2]
                # Lists and messages (label 3, type 11) have no default that one flag could say.
                return {f[3]: (f[1].decode(), f.get(5)) for f in fields if f.get(4) != 3 and f.get(5) != 11}
    raise Refused("too-old", f"jaxlib {xla.version} does not list the names of its flags")


def flag_defaults(xla):
    """{flag: its default as it is written after --flag=}: booleans, whole numbers and texts."""
    options = xla.client.CompileOptions()
    options.executable_build_options.debug_options  # asking for it has it filled with the defaults
    names, values = flag_names(xla), {}
    for number, part in proto_fields(options.SerializeAsString()):
        for inner, message in proto_fields(part) if number == 3 else ():
            if inner == 3:
                values.update(dict(proto_fields(message)))
    out = {}
    for number, (name, kind) in names.items():
        value = values.get(number)
        if kind == 8:
            out[name] = "true" if value else "false"
        elif kind in (3, 5, 4, 13):
            value = value or 0
            out[name] = str(value - (1 << 64) if value >> 63 else value)
        elif kind == 9:
            out[name] = (value or b"").decode("utf-8", "replace")
    if len(out) < 20:
        raise Refused("too-old", f"jaxlib {xla.version} does not list the defaults of its flags")
    return out


def answer_to(question, say):
    answer = {"ok": True, "python": ".".join(map(str, sys.version_info[:3])), "jaxlib": "", "device": "", "platform_version": "", "seconds": {}, "warnings": []}
    start = time.perf_counter()
    say("importing jaxlib")
    xla = Xla()
    answer["jaxlib"] = xla.version
    answer["seconds"]["import"] = time.perf_counter() - start
    if question["do"] == "compile":
        compiled(xla, question, say, answer)
    elif question["do"] == "flags":
        say("reading the defaults of its flags")
        os.environ["XLA_FLAGS"] = ""
        answer["flags"] = flag_defaults(xla)
    elif question["do"] == "run":
        run(xla, question, say, answer)
    elif question["do"] == "convert":
        say("taking StableHLO into HLO")
        module = stablehlo(xla, question)
        computation = xla.core.mlir.mlir_module_to_xla_computation(xla.bytecode(module), use_tuple_args=False, return_tuple=False)
        with open(question["output"], "wb") as out:
            out.write(computation.as_serialized_hlo_module_proto())
    return answer


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        question = json.load(file)
    try:
        answer = answer_to(question, lambda what: phase(sys.argv[3], what))
    except Refused as error:
        answer = {"ok": False, "kind": error.kind, "message": str(error), "hint": error.hint}
    except Exception as error:  # XLA's own errors: of the module, or of the compilation
        answer = {"ok": False, "kind": "compile", "message": f"{type(error).__name__}: {error}", "hint": ""}
    with open(sys.argv[2] + ".tmp", "w", encoding="utf-8") as out:
        json.dump(answer, out)
    os.replace(sys.argv[2] + ".tmp", sys.argv[2])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # nothing of the compiler's is worth waiting for, or crashing in, at its end


if __name__ == "__main__":
    main()
