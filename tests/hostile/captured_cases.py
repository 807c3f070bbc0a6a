"""Captured folders whose capture.json or arrays are damaged, lie, or grow without bound."""
import json
import pathlib
import struct
import zipfile

from tool import run

MODULE = "HloModule m\n\nENTRY e {\n  p = f32[4,2] parameter(0)\n  q = f32[] parameter(1)\n  b = f32[4,2] broadcast(q), dimensions={}\n  ROOT r = f32[4,2] OP(p, b)\n}\n"
SHARDS = [{"device": 0, "index": [[0, 2], [0, 2]]}, {"device": 1, "index": [[2, 4], [0, 2]]}]


def npy(shape, count=None):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    count = eval(shape.strip("()").strip(",").replace(",", "*") or "1") if count is None else count  # pylint: disable=eval-used
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<f", 1.5) * count


def call(**first):
    return {"module": "m", "number": 0, "arguments": [{"name": "p0", "shape": [4, 2], "dtype": "float32", "bytes": 32, "kept": False,
                                                       "shards": SHARDS, **first}, {"name": "q", "shape": [], "kept": True, "shards": []}]}


def folder(tmp, told, arrays=None):
    """Two processes' folders; the first one's."""
    for k in range(2):
        made = tmp / f"process_{k}"
        made.mkdir(exist_ok=True)
        (made / "module_0000.m.before_optimizations.txt").write_text(MODULE.replace("OP", "add"))
        (made / "module_0000.m.0001.p.after_x.before_y.txt").write_text(MODULE.replace("OP", "subtract"))
        (made / "capture.json").write_text(told if isinstance(told, str) else json.dumps(told))
        parts = {f"p0.device{k}": npy("(2, 2)"), "p1": npy("()")} if arrays is None else arrays(k)
        with zipfile.ZipFile(made / "module_0000.m.arguments.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, body in parts.items():
                archive.writestr(name + ".npy", body)
    return tmp / "process_0"


def capture(*calls):
    return {"format": "hlo-replay capture", "version": 1, "calls": list(calls)}


# Each is refused, or random values stand instead and are said so: never taken for arguments.
TOLD = {
    "nothing": "", "no object": "[1, 2]", "no JSON": '{"version": 1,', "deep": "[" * 100000, "no version": "{}", "another version": '{"version": 2}',
    "a version that is no number": '{"version": "1"}', "no calls": '{"version": 1}', "calls that are none": capture(7, None, [], "x", {"number": []}),
    "bytes that are no text": '{"version": 1, "calls": ["\udcff"]}'.encode("utf-8", "surrogateescape").decode("latin-1"),
}
SHAPES = {
    "arguments that are none": {"shape": 7}, "a negative size": {"shape": [-4, 2]}, "a size without bound": {"shape": [1 << 62, 1 << 62]},
    "shards that are none": {"shards": 9}, "a shard without an index": {"shards": [{"device": 0}]}, "a shard beyond the array": {"shards": [{"device": 0, "index": [[0, 9], [0, 2]]}]},
    "a shard from behind": {"shards": [{"device": 0, "index": [[2, 0], [0, 2]]}]}, "shards that overlap": {"shards": [SHARDS[0], {"device": 1, "index": [[1, 3], [0, 2]]}]},
    "shards with a gap": {"shards": [SHARDS[0]]}, "other parts than it says": {"shape": [2, 4], "shards": [{"device": 0, "index": [[0, 1], [0, 4]]}, {"device": 1, "index": [[1, 2], [0, 4]]}]},
    "a name that leads away": {"name": "../../p0"},
}


def told_wrong(tool, tmp, told):
    where = folder(tmp, told)
    done = run(tool, "exec", f"{where}:before_optimizations", gigabytes=1, seconds=10)
    said = done.out + done.err
    assert done.code == 2 or "p0 not kept whole: random (seed 1)" in said or "inputs:" not in said, (done.code, said)


def joined(tool, tmp):
    run(tool, "exec", f"{folder(tmp, capture(call()))}:before_optimizations").expect(0, "shards of 2 processes", "mean 3")


def bomb(tool, tmp):
    where = folder(tmp, capture(call()), lambda k: {f"p0.device{k}": npy("(2, 2)"), "p1": npy("(5000000,)")})
    run(tool, "exec", f"{where}:before_optimizations", gigabytes=1, seconds=5).expect(2, "does not fit")


def parts_of_another_type(tool, tmp):
    where = folder(tmp, capture(call()), lambda k: {f"p0.device{k}": npy("(2, 2)").replace(b"<f4", b"<i4" if k else b"<f4"), "p1": npy("()")})
    run(tool, "exec", f"{where}:before_optimizations").expect(0, "p0 not kept whole: random (seed 1)")


def cases(tool, data, tmp):
    del data
    number = iter(range(1000))

    def fresh():
        made = pathlib.Path(tmp) / f"captured_{next(number)}"
        made.mkdir()
        return made

    for name, told in TOLD.items():
        yield f"captured: {name}", lambda told=told: told_wrong(tool, fresh(), told)
    for name, first in SHAPES.items():
        yield f"captured: {name}", lambda first=first: told_wrong(tool, fresh(), capture(call(**first)))
    yield "captured: shards of two processes", lambda: joined(tool, fresh())
    yield "captured: an array that is larger than its parameter", lambda: bomb(tool, fresh())
    yield "captured: parts of another type", lambda: parts_of_another_type(tool, fresh())
