"""What jax compiles and what it is called with, kept next to XLA's dump: a captured folder (docs/formats.md).

`hlo_replay.jax` imports this file. `hlo-replay capture` and `hlo-replay triage` have a Python program run it as its
sitecustomize, and so does HLO_REPLAY_CAPTURE=FOLDER with `hlo-replay capture --hook`: it needs the standard library alone,
and numpy where arrays are written. Whatever fails here is noted; the program continues as it would.
"""
from __future__ import annotations

import atexit
import functools
import importlib.abc
import importlib.util
import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

VERSION = 1  # of capture.json
SMALL = 256 << 20  # bytes of all arrays that `small` keeps
LARGEST_TEXT = 16 << 20  # of a lowering; above it stays bytecode
CHOICES = ("none", "small", "all")
# Options of jax that change what is compiled.
CONFIG = ("jax_enable_x64", "jax_default_matmul_precision", "jax_default_prng_impl", "jax_threefry_partitionable",
          "jax_use_shardy_partitioner", "jax_numpy_dtype_promotion", "jax_default_dtype_bits", "jax_debug_nans",
          "jax_debug_infs", "jax_disable_jit", "jax_enable_checks", "jax_compiler_enable_remat_pass",
          "jax_optimization_level", "jax_memory_fitting_level", "jax_memory_fitting_effort",
          "jax_exec_time_optimization_effort", "jax_disable_most_optimizations", "jax_xla_profile_version",
          "jax_enable_pgle", "jax_pgle_profiling_runs", "jax_softmax_custom_jvp", "jax_platforms", "jax_num_cpu_devices",
          "jax_use_simplified_jaxpr_constants", "jax_captured_constants_warn_bytes")
ENVIRONMENT = re.compile(r"(JAX|XLA|LIBTPU|NVIDIA_TF32|CUDA_VISIBLE|CUBLAS|CUDNN|TF_XLA|OMP_NUM_THREADS|TPU_)\w*$")
SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|CREDENTIAL|KEY", re.I)
DUMP_FLAGS = ("--xla_dump_hlo_as_text", "--xla_dump_hlo_pass_re=.*", "--xla_dump_large_constants")


def _write(path: str, data: bytes) -> None:
    """Whole or not at all."""
    partial = f"{path}.{os.getpid()}.{threading.get_ident()}.tmp"
    with open(partial, "wb") as out:
        out.write(data)
    os.replace(partial, path)


def _save(path: str, arrays: dict[str, Any]) -> None:
    import numpy as np

    partial = f"{path}.{os.getpid()}.{threading.get_ident()}.tmp"
    with open(partial, "wb") as out:
        np.savez(out, **arrays)
    os.replace(partial, path)


def _plain(array: Any) -> Any:
    """What numpy has no type for, as integers of its bits."""
    return array if array.dtype.kind in "biufc" else array.view(f"u{array.dtype.itemsize}")


def _index(slices: Any, shape: list[int]) -> list[list[int]]:
    return [[*s.indices(n)[:2]] for s, n in zip(slices, shape)]


def _of(value: Any) -> Any:
    """The array of a key of jax; everything else as it is."""
    return getattr(value, "_base_array", value) if "key<" in str(getattr(value, "dtype", "")) else value


def _describe(name: str, value: Any) -> dict[str, Any]:
    """What capture.json records of an array, its shards by device among it."""
    shape = [int(n) for n in getattr(value, "shape", ())]
    told: dict[str, Any] = {"name": name, "shape": shape, "dtype": str(getattr(value, "dtype", type(value).__name__)),
            "bytes": int(getattr(value, "nbytes", 8)), "kept": False, "shards": []}
    sharding = getattr(value, "sharding", None)
    if sharding is not None and len(getattr(sharding, "device_set", ())) > 1:
        told["sharding"] = str(sharding)
        told["shards"] = [{"device": d.id, "index": _index(s or (), shape)}
                          for d, s in sorted(sharding.devices_indices_map(value.shape).items(), key=lambda x: x[0].id)]
    return told


def _modules(names: Iterable[str]) -> set[tuple[int, str]]:
    """Number and name of each module whose first stage is among these files."""
    found = (re.match(r"module_(\d+)\.(.+?)\.(?:[^.]*_)?before_optimizations\.txt$", name) for name in names)
    return {(int(match[1]), match[2]) for match in found if match}


def _spelled(name: str) -> str:
    """A module's name as file names have it."""
    return re.sub(r"\W", "_", name).rstrip("_")


class Keeper:
    """Writes a captured folder next to one dump, or next to the dump of each compilation."""

    def __init__(self, folder: str | None, arguments: str = "small", dump: str | None = None) -> None:
        self.folder = folder  # of capture.json; None: the dump of each compilation
        self.dump = dump  # None: what compiled() is told
        self.arguments = arguments if arguments in CHOICES else "small"
        self.lock = threading.RLock()
        self.executables: dict[int, tuple[Any, int, str, str]] = {}  # id → executable, module's number and name, folder
        self.dumps: dict[str, tuple[set[str], set[tuple[int, str]]]] = {}  # files that are known, modules of nobody
        self.seen: dict[int, Any] = {}
        self.names: dict[str, int] = {}
        self.bytes = 0
        self.written: dict[str, float] = {}  # when
        self.late: set[str] = set()
        self.told: dict[str, dict[str, Any]] = {}  # folder → capture.json

    # Compilations.

    def dumped(self, dump: str) -> set[tuple[int, str]]:
        """Modules whose dump has no owner yet."""
        known, unclaimed = self.dumps.setdefault(dump, (set(), set()))
        try:
            new = set(os.listdir(dump)) - known
        except OSError:
            return unclaimed
        known |= new
        unclaimed |= _modules(new)
        return unclaimed

    def compiled(self, executable: Any, computation: Any, dump: str) -> None:
        """A compilation has ended; executable: None where it failed."""
        with self.lock:
            unclaimed = self.dumped(dump)
            name = _spelled(str(computation.operation.attributes["sym_name"]).strip('"'))
            found = {m for m in unclaimed if _spelled(m[1]) == name}
            if executable is None:
                unclaimed -= found
                return
            if len(found) != 1:  # none: it came out of a cache; several: others compile at the same time
                return
            unclaimed -= found
            (number, name), = found
            self.executables[id(executable)] = (executable, number, name, dump)
            self.lowered(self.folder or dump, number, name, computation)

    def lowered(self, folder: str, number: int, name: str, computation: Any) -> None:
        """What a module was lowered to, before XLA."""
        lowering = self.lowering(folder, f"module_{number:04}.{name}.stablehlo", computation)
        self.capture(folder)["compiled"].append({"module": name, "number": number, "lowering": lowering})
        self.write(folder)

    def lowering(self, folder: str, name: str, computation: Any) -> str:
        import io

        out = io.BytesIO()
        computation.operation.write_bytecode(file=out)
        if len(out.getvalue()) <= LARGEST_TEXT:
            name, data = name + ".mlir", computation.operation.get_asm(enable_debug_info=True).encode()
        else:
            name, data = name + ".mlirbc", out.getvalue()
        _write(os.path.join(folder, name), data)
        return name

    # Calls.

    def before(self, executable: Any, arguments: Sequence[Any]) -> Any:
        """A call begins; None where nothing of it is kept, else what after() takes."""
        with self.lock:
            if id(executable) in self.seen:
                return None
            self.seen[id(executable)] = executable  # kept, that nobody else gets its number
            own = self.executables.get(id(getattr(executable, "xla_executable", None)))
            name = str(executable.name)
            folder = self.folder or (own[3] if own else None)
            if folder is None:
                return None
            if getattr(executable, "mut", None) or getattr(executable, "ordered_effects", None):
                self.note(folder, f"{name}: arguments of functions with references or ordered effects are not kept")
                return None
            if executable.kept_var_idx is not None:
                arguments = [a for k, a in enumerate(arguments) if k in executable.kept_var_idx]
            return self.call(folder, own[1] if own else None, own[2] if own else name, arguments)

    def call(self, folder: str, number: int | None, name: str, arguments: Sequence[Any]) -> Any:
        """The first call of a module (`number`: None where it is unknown which one), by what its parameters are given.
        What after() takes where its results are wanted, too, else None."""
        with self.lock:
            call: dict[str, Any] = {"module": name, "number": number, "arguments": [], "results": []}
            stem = None if number is None else f"module_{number:04}.{name}"
            arrays = self.arrays("p", arguments, call["arguments"])
            whole = self.arguments != "none" and all(a["kept"] for a in call["arguments"])
            if stem and (arrays or whole):
                call["arguments_file"] = stem + ".arguments.npz"
                _save(os.path.join(folder, call["arguments_file"]), arrays)
            elif whole and arrays:
                k = self.names.get(name, 0)
                self.names[name] = k + 1
                safe = re.sub(r"[^\w.-]", "_", name)[:100]
                call["arguments_file"] = f"arguments.{safe}.{k}.npz"
                path = os.path.join(folder, call["arguments_file"])
                if k < 16 and not os.path.exists(path):  # another process was first
                    _save(path, arrays)
            calls = self.capture(folder)["calls"]
            calls[:] = [c for c in calls if number is None or c["number"] != number] + [call]
            self.write(folder)
            return (folder, call, stem) if stem and whole else None

    def after(self, kept: Any, results: Sequence[Any]) -> None:
        """The call that call() was given has ended."""
        folder, call, stem = kept
        with self.lock:
            arrays = self.arrays("o", results, call["results"])
            if all(r["kept"] for r in call["results"]):
                call["results_file"] = stem + ".results.npz"
                _save(os.path.join(folder, call["results_file"]), arrays)
            self.write(folder)

    def arrays(self, letter: str, values: Sequence[Any], told: list[dict[str, Any]]) -> dict[str, Any]:
        """Those of them that are kept; what there is of all is appended to `told`."""
        import numpy as np

        out: dict[str, Any] = {}
        for k, value in enumerate(values):
            value, name = _of(value), f"{letter}{k}"
            told.append(_describe(name, value))
            size = told[-1]["bytes"]
            if self.arguments == "none" or (self.arguments == "small" and self.bytes + size > SMALL):
                continue
            if not getattr(value, "is_fully_addressable", True):
                for shard in value.addressable_shards:  # of this process alone
                    if shard.replica_id == 0:
                        out[f"{name}.device{shard.device.id}"] = _plain(np.asarray(shard.data))
                continue
            array = np.asarray(value)
            if not hasattr(value, "sharding"):  # Python's numbers and numpy's arrays, in the types that jax gives them
                array = array.astype(sys.modules["jax"].dtypes.canonicalize_dtype(array.dtype))
            out[name] = _plain(array)
            told[-1]["kept"] = True
            self.bytes += size
        return out

    # capture.json.

    def capture(self, folder: str) -> dict[str, Any]:
        if folder not in self.told:
            self.told[folder] = {"format": "hlo-replay capture", "version": VERSION, "kept": self.arguments,
                                 **self.surroundings(), "compiled": [], "calls": [], "notes": []}
        return self.told[folder]

    def surroundings(self) -> dict[str, Any]:
        jax = sys.modules["jax"]
        from importlib import metadata

        versions = {"python": ".".join(map(str, sys.version_info[:3])), "jax": jax.__version__}
        for distribution in metadata.distributions():
            name = (distribution.metadata["Name"] or "").lower().replace("_", "-")
            if name in ("jaxlib", "libtpu", "numpy", "flax", "torch-xla") or re.match(r"jax-(cuda|rocm|metal)|nvidia-(cudnn|cublas|nccl)", name):
                versions[name] = distribution.version
        values = getattr(jax.config, "values", {})
        told: dict[str, Any] = {"program": [str(word) for word in sys.argv], "versions": versions,
                "flags": {name: value for name, value in sorted(os.environ.items())
                          if ENVIRONMENT.match(name) and not SECRET.search(name)},
                "jax_config": {name: values[name] for name in CONFIG
                               if isinstance(values.get(name), (bool, int, float, str))}}
        device = jax.devices()[0]
        told["platform"] = {"name": device.platform, "version": str(getattr(device.client, "platform_version", "")).split("\n")[0]}
        told["devices"] = [{"id": d.id, "kind": str(d.device_kind), "process": d.process_index} for d in jax.devices()]
        told["process"] = {"index": jax.process_index(), "count": jax.process_count()}
        return told

    def note(self, folder: str, text: str) -> None:
        notes = self.capture(folder)["notes"]
        if text not in notes and len(notes) < 100:
            notes.append(text)

    def write(self, folder: str, now: bool = False) -> None:
        """At once, but of long programs every other second, and at their end."""
        if not now and len(self.told[folder]["compiled"]) > 64 and time.monotonic() - self.written.get(folder, 0) < 2:
            if not self.late:
                atexit.register(self.finish)
            self.late.add(folder)
            return
        self.written[folder] = time.monotonic()
        self.late.discard(folder)
        _write(os.path.join(folder, "capture.json"), (json.dumps(self.told[folder], indent=1) + "\n").encode())

    # What of jax is watched.

    def finish(self) -> None:
        with self.lock:
            for folder in list(self.late):
                try:
                    self.write(folder, now=True)
                except OSError:  # it is gone
                    pass

    def failed(self, what: str, error: Exception) -> None:
        try:
            for folder in list(self.told) or ([self.folder] if self.folder else []):
                self.note(folder, f"{what}: {type(error).__name__}: {error}"[:500])
                self.write(folder)
        except Exception:  # nothing more can be told of it
            pass

    def watch_calls(self, module: Any) -> Any:
        """`module`: jax._src.interpreters.pxla. What it was is given back."""
        executable: Any = getattr(module, "ExecuteReplicated", None)
        original = getattr(executable, "__call__", None)
        if original is None:
            return None

        @functools.wraps(original)
        def call(executing: Any, *arguments: Any) -> Any:
            kept = None
            try:
                kept = self.before(executing, arguments)
            except Exception as error:
                self.failed("arguments", error)
            results = original(executing, *arguments)
            if kept is not None:
                try:
                    self.after(kept, results)
                except Exception as error:
                    self.failed("results", error)
            return results

        executable.__call__ = call
        return original

    def watch_compilations(self, module: Any) -> None:
        """`module`: jax._src.compiler."""
        original = getattr(module, "compile_or_get_cached", None)
        if original is None:
            return

        @functools.wraps(original)
        def compiled(backend: Any, computation: Any, *arguments: Any, **options: Any) -> Any:
            executable = None
            try:
                executable = original(backend, computation, *arguments, **options)
            finally:
                try:
                    self.compiled(executable, computation, self.dump or "")
                except Exception as error:
                    self.failed("a compilation", error)
            return executable

        module.compile_or_get_cached = compiled


class _Finder(importlib.abc.MetaPathFinder):
    """Watches modules of jax when they are imported; the first of them asks for the keeper."""

    def __init__(self, begin: Callable[[], Keeper | None]) -> None:
        self.begin = begin
        self.keeper: Keeper | None = None
        self.watched: dict[str, Any] = {"jax": None, "jax._src.compiler": Keeper.watch_compilations,
                        "jax._src.interpreters.pxla": Keeper.watch_calls}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in self.watched:
            return None
        watch = self.watched.pop(name)
        if self.keeper is None:
            self.keeper = self.begin()
        spec = importlib.util.find_spec(name)
        if watch and self.keeper and spec and spec.loader:
            execute = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                execute(module)
                watch(self.keeper, module)

            setattr(spec.loader, "exec_module", exec_module)
        return spec


def _process_folder(top: str) -> str | None:
    """A folder for this process alone, by its rank where it is known."""
    ranks = ("SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "JAX_PROCESS_ID", "CLOUD_TPU_TASK_ID")
    rank = next((os.environ[name] for name in ranks if os.environ.get(name, "").isdigit()), None)
    names = [f"process_{rank}"] if rank is not None else []
    names += [f"process_{os.getpid()}", *(f"process_{os.getpid()}.{k}" for k in range(2, 100))]
    for name in names:
        try:
            os.makedirs(os.path.join(top, name))
            return os.path.join(top, name)
        except FileExistsError:
            continue
    return None


def _begin() -> Keeper | None:
    """The keeper of this process, before jax is imported; XLA reads its flags after that."""
    arguments = os.environ.get("HLO_REPLAY_ARGUMENTS") or "small"
    flags = os.environ.get("XLA_FLAGS", "")
    folder = os.environ.get("HLO_REPLAY_KEPT")
    if folder:  # `hlo-replay capture` has set the flags
        dump = re.findall(r"--xla_dump_to=(\S+)", flags)
        return Keeper(folder, arguments, dump[-1]) if dump else None
    top = os.environ["HLO_REPLAY_CAPTURE"]
    try:
        folder = _process_folder(os.path.abspath(top))
    except OSError as error:
        sys.stderr.write(f"hlo-replay: HLO_REPLAY_CAPTURE={top}: {error}; nothing is captured\n")
        return None
    if folder is None:
        return None
    os.environ["XLA_FLAGS"] = " ".join([flags, f"--xla_dump_to={folder}", *DUMP_FLAGS,
                                        f"--xla_gpu_dump_autotune_results_to={folder}/autotune_results.pbtxt"]).strip()
    os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"
    return Keeper(folder, arguments, folder)


def _as_sitecustomize() -> None:
    if os.environ.get("HLO_REPLAY_KEPT") or os.environ.get("HLO_REPLAY_CAPTURE"):
        sys.meta_path.insert(0, _Finder(_begin))
    # The one that this stands in front of.
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in [p for p in sys.path if os.path.abspath(p or ".") != here]:
        file = os.path.join(folder, "sitecustomize.py")
        if os.path.exists(file):
            spec = importlib.util.spec_from_file_location("sitecustomize_of_program", file)
            if spec and spec.loader:
                spec.loader.exec_module(importlib.util.module_from_spec(spec))
            break


if __name__ == "sitecustomize":
    _as_sitecustomize()
