"""The page's engine as WebAssembly, in node, against the same code natively: the same questions get the same answers.

engine_wasm_test.py ENGINE_ASK ENGINE_FOLDER SOURCE_FOLDER [PART…] [--corpus=FOLDER] [--tool=HLO_REPLAY]: parts are same,
all, hostile, values; `all` (every module of the corpus) and `speed`, which only measures, where they are named. 77 where
node is not here. Where HLO_REPLAY says that the engine of its pages is older than itself, answers may differ: that is
counted and told, and what must hold is that nothing ends the engine, that modules open where they do natively, and that it
answers the version of protocol.ts that pages ask.
"""
import json
import math
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
PARTS = ("same", "hostile", "values")
STACK_KB = 480  # what Chromium gives a worker, and less than node's own


class Engine:
    """One of the two, asked by lines (engine_ask.cc, engine_ask.js)."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ms, self.mb = 0.0, 0

    def order(self, what):
        self.process.stdin.write(json.dumps(what).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"it ended with {self.process.wait()} at {str(what)[:200]}")
        ms, mb, answer = line.split(b" ", 2)
        self.ms, self.mb = float(ms), int(mb)
        return json.loads(answer)

    def ask(self, method, **question):
        return self.order({"method": method, **question})

    def open(self, *files, name=None):
        for file in files:
            answer = self.order({"put": name or pathlib.Path(file).name, "file": str(file)})
            if "error" in answer or "ended" in answer:
                return answer
        return self.ask("open")

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)


def plain(answer):
    """Without what a clock says."""
    if isinstance(answer, dict):
        return {k: plain(v) for k, v in answer.items() if k not in ("microseconds", "ms")}
    return [plain(v) for v in answer] if isinstance(answer, list) else answer


class Older:
    """What an engine that is older than these sources answers otherwise than they do; counted, not a fault."""
    allowed = False
    differ, asked = 0, 0

    @classmethod
    def same(cls, holds, what):
        cls.asked += 1
        if holds:
            return True
        assert cls.allowed, what()
        cls.differ += 1
        return False


NUMBER = re.compile(r"-?(?:inf|nan|\d+(?:\.\d+)?(?:e[+-]?\d+)?)")


def ulps(a, b):
    """How many f32 lie between two numbers of a text."""
    def place(x):
        n = struct.unpack("<i", struct.pack("<f", x))[0]
        return n if n >= 0 else -(n & 0x7FFFFFFF)
    x, y = float(a), float(b)
    if math.isnan(x) or math.isnan(y):
        return 0 if math.isnan(x) and math.isnan(y) else math.inf
    return abs(place(x) - place(y))


def compare_lines(native, page, where):
    """Equal, or constants that folding made are within 1 ulp: those are returned."""
    if native == page:
        return []
    assert len(native) == len(page), f"{where}: {len(native)} lines natively, {len(page)} in the page"
    near = []
    for a, b in zip(native, page):
        if a == b:
            continue
        assert NUMBER.sub("#", a) == NUMBER.sub("#", b) and "constant(" in a, f"{where}:\n  {a}\n  {b}"
        for x, y in zip(NUMBER.findall(a), NUMBER.findall(b)):
            assert x == y or ulps(x, y) <= 1, f"{where}: {x} and {y}:\n  {a}\n  {b}"
        near.append(f"{where}: {a.strip()[:120]} | {b.strip()[:120]}")
    return near


def both(native, page, method, **question):
    a, b = plain(native.ask(method, **question)), plain(page.ask(method, **question))
    assert "ended" not in b, f"{method} {str(question)[:200]}: {str(b)[:400]}"
    Older.same(a == b, lambda: f"{method} {str(question)[:200]}:\n  natively {str(a)[:400]}\n  page     {str(b)[:400]}")
    return a


def same(native, page, file, pipeline):
    """Every stage of the pipeline over the module; what was asked, and folded constants that differ."""
    a, b = native.open(file), page.open(file)
    assert ("error" in a) == ("error" in b) and "ended" not in b, f"{file.name}: {str(a)[:300]}\n{str(b)[:300]}"
    Older.same(plain(a) == plain(b), lambda: f"{file.name}: {str(a)[:300]}\n{str(b)[:300]}")
    if "error" in a:
        return 0, [], 0
    near, stages = [], 0
    question = {"at": {"module": 0, "state": 0}, "pipeline": pipeline}
    runs = [engine.ask("run", **question) for engine in (native, page)]
    ms = page.ms
    assert "ended" not in runs[1], f"{file.name}: {str(runs[1])[:300]}"
    if not Older.same(plain(runs[0]) == plain(runs[1]), lambda: f"{file.name}: {str(runs[0])[:300]}\n{str(runs[1])[:300]}"):
        return 1, [], ms
    modules = both(native, page, "modules")["modules"]
    for m in modules:
        for state in range(m["states"]):
            at = {"module": m["module"], "state": state}
            texts = [engine.ask("text", at=at, full=True) for engine in (native, page)]
            assert "error" not in texts[0] and "ended" not in texts[1], f"{file.name} {at}"
            if Older.allowed:
                assert state > 0 or "error" not in texts[1], f"{file.name} {at}: {str(texts[1])[:300]}"
                Older.same(texts[0]["lines"] == texts[1].get("lines"), None)
            else:
                assert texts[0]["ids"] == texts[1]["ids"], f"{file.name} {at}"
                near += compare_lines(texts[0]["lines"], texts[1]["lines"], f"{file.name} state {state}")
            stages += 1
    last = {"module": modules[-1]["module"], "state": modules[-1]["states"] - 1}
    both(native, page, "drawing", at=last, open=None)
    both(native, page, "search", at=last, query="op:fusion", limit=50)
    both(native, page, "diff", a={"module": last["module"], "state": 0}, b=last)
    both(native, page, "rows", module=last["module"])
    return stages, near, ms


def part_same(native, page, source, corpus, every=False):
    files = [source / "testdata" / "mobilenet_v1.hlo"] + [source / "testdata" / "modules" / name for name in ("llama_block.hlo", "mixed.hlo", "softmax.hlo", "layer_norm.hlo")]
    if corpus:
        names = sorted(corpus.glob("*.hlo.txt"))
        chosen = [n for n in names if re.search("resnet50__infer|llama3_8b__infer__1gpu__prefill|imagenette__infer|mha_block|mixtral_8x7b__infer", n.name)]
        files = names if every else chosen + files[:1]
    total, near = 0, []
    for file in files:
        stages, differ, ms = same(native, page, file, "xla-gpu")
        print(f"  {file.name}: {stages} states, {len(differ)} folded constants within 1 ulp, {ms:.0f} ms in the page, {page.mb} MB", flush=True)
        total, near = total + stages, near + differ
    for line in near[:40]:
        print("  ", line)
    assert total > 0
    return f"{len(files)} modules, {total} states equal, {len(near)} lines with constants within 1 ulp"


def part_hostile(page, source, tmp, shared):
    from bombs import B  # pylint: disable=import-outside-toplevel
    files = []
    for name, text in B.items():
        path = tmp / (re.sub(r"\W", "_", name) + ".hlo")
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        files.append(path)
    calls = "".join(f"k{i} {{ p = f32[] parameter(0)\n ROOT r = f32[] call(p), to_apply=k{i - 1} }}\n" if i else "k0 { ROOT p = f32[] parameter(0) }\n" for i in range(20000))
    (tmp / "calls.hlo").write_text(f"HloModule m\n{calls}ENTRY e {{ p = f32[] parameter(0)\n ROOT r = f32[] call(p), to_apply=k19999 }}\n")
    (tmp / "deep.json").write_text('{"a":' + "[" * 200000)
    for dims in ("65536,65536", "4294967295", "4294967296", "1073741825", "2147483648,2", "46341,46341,2", "4611686018427387904"):
        for op in ("iota(), iota_dimension=0", "broadcast(z), dimensions={}", "rng(z, z), distribution=rng_uniform"):
            path = tmp / f"size_{dims.replace(',', '_')}_{op[:3]}.hlo"
            path.write_text(f"HloModule m\nENTRY e {{ z = f32[] constant(1)\n b = f32[{dims}] {op}\n ROOT r = f32[{dims}] add(b, b) }}\n")
            files.append(path)
    files += [tmp / "calls.hlo", tmp / "deep.json", *sorted((source / "testdata" / "hostile").iterdir())]
    files += sorted(p for p in shared.rglob("*") if p.is_file() and p.stat().st_size < 30 << 20) if shared else []
    ended, slow, refused = [], [], 0
    questions = [("text", {"full": True}), ("drawing", {"open": None}), ("memory", {}), ("roofline", {}), ("evaluate", {}), ("run", {"pipeline": "xla-gpu"})]
    for file in files:
        answers = [page.open(file)]
        slow.append((page.ms, file.name))
        if "error" not in answers[0] and "ended" not in answers[0]:
            for method, more in questions:
                answers.append(page.ask(method, at={"module": 0, "state": 0}, **more))
                slow.append((page.ms, f"{file.name} {method}"))
                if "ended" in answers[-1]:
                    ended.append(f"{file.name}: {method}: {answers[-1]}")
                    break
        elif "ended" in answers[0]:
            ended.append(f"{file.name}: open: {answers[0]}")
        for answer in answers:
            assert isinstance(answer, dict)
            refused += "error" in answer
            assert "this should not happen" not in json.dumps(answer), f"{file.name}: {answer}"
    for ms, name in sorted(slow, reverse=True)[:3]:
        print(f"  {ms:8.0f} ms  {name}")
    assert not ended, "the engine ended:\n  " + "\n  ".join(ended)
    assert refused > 20
    return f"{len(files)} files, {refused} answers refuse, the engine never ended; {page.mb} MB"


def part_values(native, page, source):
    """Small modules run to the same values: NaN counts and shapes alike, numbers within 1e-5 of each other."""
    def near(x, y):
        return x == y or (isinstance(x, float) and isinstance(y, (int, float)) and math.isclose(x, y, rel_tol=1e-5, abs_tol=1e-7))
    count = 0
    for file in [source / "testdata" / "modules" / f for f in ("softmax.hlo", "layer_norm.hlo", "gather.hlo", "topk.hlo", "sortkv.hlo")] + [source / "testdata" / "linear_regression.hlo"]:
        native.open(file), page.open(file)
        a, b = (engine.ask("evaluate", at={"module": 0, "state": 0}) for engine in (native, page))
        assert "ended" not in b, f"{file.name}: {b}"
        values = list(zip(a.get("values", []), b.get("values", [])))
        holds = a.get("ran") == b.get("ran") and len(a.get("values", [])) == len(b.get("values", [])) and ("error" in a) == ("error" in b) and all(
            x["id"] == y["id"] and x["nan"] == y["nan"] and x["shape"] == y["shape"] and all(near(x[k], y[k]) for k in ("min", "max", "mean"))
            for x, y in values)
        Older.same(holds, lambda: f"{file.name}: {str(a)[:200]} {str(b)[:200]} {next(((x, y) for x, y in values if x != y), '')}")
        count += len(a.get("values", []))
    assert count > 20
    return f"{count} values alike"


def part_speed(native, page, source, tmp, corpus):
    """A training step of 12 k instructions where the corpus is there, else layers of ours."""
    file = corpus / "rocm__resnet50__train__allgpu__train_step_m1654.hlo.txt" if corpus else None
    if not file or not file.exists():
        lines = ["p0 = f32[64,64] parameter(0)"]
        for i in range(4000):
            lines += [f"z{i} = f32[] constant(0)", f"b{i} = f32[64,64] broadcast(z{i}), dimensions={{}}", f"p{i + 1} = f32[64,64] add(p{i}, b{i})"]
        file = tmp / "speed.hlo"
        file.write_text("HloModule m\nENTRY e {\n  " + "\n  ".join(lines) + "\n  ROOT r = f32[64,64] negate(p4000)\n}\n")
    times = {}
    for name, engine in (("page", page), ("native", native)):
        opened = engine.open(file)
        times[name, "open"] = engine.ms
        instructions = opened["modules"][0]["instructions"]
        engine.ask("run", at={"module": 0, "state": 0}, passes=["algsimp"])
        times[name, "algsimp"] = engine.ms
        engine.open(file)
        engine.ask("run", at={"module": 0, "state": 0}, pipeline="xla-gpu")
        times[name, "xla-gpu"] = engine.ms
    for (name, what), ms in times.items():
        print(f"  {file.name}, {instructions} instructions, {what}: {ms:.0f} ms ({name})")
    return f"algsimp in {times['page', 'algsimp']:.0f} ms, {page.mb} MB"


def main():
    words = [a for a in sys.argv[1:] if not a.startswith("--")]
    corpus = next((pathlib.Path(a[9:]) for a in sys.argv if a.startswith("--corpus=")), None)
    ask, folder, source, parts = words[0], words[1], pathlib.Path(words[2]).resolve(), words[3:] or PARTS
    sys.path.insert(0, str(source / "tests" / "common"))
    shared = source.parent / "shared"
    if not corpus and (shared / "corpus").is_dir():
        corpus = shared / "corpus"
    if not shutil.which("node"):
        print("skipped: no node (tests/dev/setup.sh browser)")
        return 77
    tool = next((a[7:] for a in sys.argv if a.startswith("--tool=")), None)
    if tool:
        told = json.loads(subprocess.run([tool, "--version", "--json"], check=True, stdout=subprocess.PIPE).stdout)["page_engine"]
        if told == "none":
            print("FAILED: the engine was made with another protocol.ts: bash tests/dev/engine_made.sh")
            return 1
        Older.allowed = told == "older"
    failed = 0
    for part in parts:
        native = Engine([os.path.abspath(ask)])
        page = Engine(["node", f"--stack-size={STACK_KB}", str(source / "tests" / "page" / "engine_ask.js"), os.path.abspath(folder)])
        try:
            asks = int(re.search(r"ProtocolVersion = (\d+)", (source / "viewer/page/protocol.ts").read_text())[1])
            assert page.order({"started": True}) == {"protocol": asks}, "it answers another version of protocol.ts"
            with tempfile.TemporaryDirectory() as name:
                tmp = pathlib.Path(name)
                told = {"same": lambda: part_same(native, page, source, corpus),
                        "all": lambda: part_same(native, page, source, corpus, every=True),
                        "hostile": lambda: part_hostile(page, source, tmp, shared / "hostile" if (shared / "hostile").is_dir() else None),
                        "values": lambda: part_values(native, page, source),
                        "speed": lambda: part_speed(native, page, source, tmp, corpus)}[part]()
            print(f"{part}: {told}")
        except AssertionError as e:
            failed += 1
            print(f"FAILED {part}: {e}")
        native.close(), page.close()
    if Older.allowed:
        print(f"the engine was made from older sources than these: {Older.differ} of {Older.asked} answers differ, which is no fault; bash tests/dev/engine_made.sh makes it new")
    print(f"{len(parts) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
