"""The page's engine that stands in the sources: its parts fit, it names no folder of a machine, and what the build says of
its age (viewer/engine/state.cmake) is right. engine_made_test.py SOURCE_FOLDER CMAKE"""
import gzip
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE, CMAKE = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
MADE = "viewer/engine/made"
MOST_BYTES = 2_000_000   # of engine.wasm.gz, of which each change adds one to the repository
failed = 0


def expect(what, holds, told=""):
    global failed
    if not holds:
        failed += 1
        print(f"FAILED {what}: {told}")


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def committed():
    said = {line[66:]: line[:64] for line in (SOURCE / MADE / "inputs.sha256").read_text().splitlines() if not line.startswith("#")}
    for name in (f"{MADE}/engine.wasm.gz", f"{MADE}/worker.js"):
        expect(f"{name} is the one of inputs.sha256", said.get(name) == sha256((SOURCE / name).read_bytes()))
    expect("page and engine speak by the same protocol.ts (else: bash tests/dev/engine_made.sh)",
           said["viewer/page/protocol.ts"] == sha256((SOURCE / "viewer/page/protocol.ts").read_bytes()))
    expect("all names are of this folder", not [n for n in said if n.startswith(("/", ".")) or ".." in n or n.startswith("build")])
    for word in ("ir/module.cc", "ir/opcodes.def", "parser/parser.h", "viewer/engine/wasm_main.cc", "viewer/page/worker.ts", "viewer/engine/sources.cmake"):
        expect("it was made from", word in said, word)
    expect("targets of GPUs are inputs", sum(n.endswith(".pbtxt") for n in said) > 3)
    packed = (SOURCE / MADE / "engine.wasm.gz").read_bytes()
    wasm = gzip.decompress(packed)
    expect("WebAssembly", wasm[:4] == b"\0asm" and len(packed) < MOST_BYTES, len(packed))
    expect("no name and no time in the gzip header", packed[3] == 0 and packed[4:8] == bytes(4), packed[:10])
    for name, data in (("engine.wasm", wasm), ("worker.js", (SOURCE / MADE / "worker.js").read_bytes())):
        expect(f"no folder of a machine in {name}", not (found := re.findall(rb"/(?:work|home|root|usr|build|tmp/)[/\w.-]*\.(?:cc|h|js|ts|o)\b", data)), found[:3])


def states():
    """What the script says of a small engine made from two sources, a header and protocol.ts."""
    with tempfile.TemporaryDirectory() as directory:
        tmp = pathlib.Path(directory)
        files = {"a.cc": "a", "b.cc": "b", "h.h": "h", "viewer/page/protocol.ts": "p", f"{MADE}/engine.wasm.gz": "wasm", f"{MADE}/worker.js": "js"}
        required = ["a.cc", "b.cc", "viewer/page/protocol.ts"]
        listed = "# made by hand\n" + "".join(f"{sha256(text.encode())}  {name}\n" for name, text in files.items())

        def said(changed, of=None, fresh="OFF"):
            """The state, or the error; and the dependencies that were written."""
            for name, text in {**files, **changed}.items():
                (tmp / name).parent.mkdir(parents=True, exist_ok=True)
                (tmp / name).unlink(missing_ok=True)
                if text is not None:
                    (tmp / name).write_text(text)
            (tmp / MADE / "inputs.sha256").write_text(listed)
            (tmp / "required.txt").write_text("\n".join(of or required) + "\n")
            done = subprocess.run([CMAKE, f"-DOUT={tmp}/out.cc", f"-DDIR={tmp}", f"-DREQUIRED={tmp}/required.txt", f"-DFRESH={fresh}",
                                   "-P", SOURCE / "viewer/engine/state.cmake"], capture_output=True, text=True, check=False)
            if done.returncode:
                return done.stderr
            return re.search(r"PageEngineState::(\w+); }", (tmp / "out.cc").read_text())[1]

        expect("as it was made", said({}) == "kFresh")
        expect("dependencies", (tmp / "out.cc.d").read_text() == f"{tmp}/out.cc: " + " ".join(f"{tmp}/{n}" for n in files) + "\n")
        before = (tmp / "out.cc").stat().st_mtime_ns
        expect("the same is not written again", said({}) == "kFresh" and (tmp / "out.cc").stat().st_mtime_ns == before)
        for what, changed, of in (("a source has changed", {"b.cc": "B"}, None), ("a header has changed", {"h.h": "H"}, None),
                                  ("a header is gone", {"h.h": None}, None), ("a source more", {"c.cc": "c"}, [*required, "c.cc"]),
                                  ("a source less", {}, ["a.cc", "viewer/page/protocol.ts"])):
            expect(what, (got := said(changed, of)) == "kOlder", got)
        expect("another protocol", said({"viewer/page/protocol.ts": "q", "b.cc": "B"}) == "kOtherProtocol")
        expect("parts that do not fit", "may not fit each other" in said({f"{MADE}/worker.js": "other"}).replace("\n", " ").replace("  ", " "))
        expect("compiled by this build", said({"b.cc": "B"}, fresh="ON") == "kFresh")


committed()
states()
print("passed" if not failed else f"{failed} failed")
sys.exit(1 if failed else 0)
