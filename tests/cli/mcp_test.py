"""hlo-replay mcp by its protocol: handshakes of every revision, tools, budgets, bad messages, cancelling, confinement,
and a fault found in a dump from beginning to end.

mcp_test.py HLO_REPLAY SOURCE_FOLDER [--transcript]: the exchange of the found fault as docs/mcp.md has it.
"""
import json
import pathlib
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
TOOL, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
failed = []


def expect(what, ok, why=""):
    if not ok:
        failed.append(what)
        print(f"FAILED {what}: {why}")


class Client:
    """A server, and what it says line by line."""

    def __init__(self, *options):
        self.process = subprocess.Popen([TOOL, "mcp", *map(str, options)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines, self.number = queue.Queue(), 0
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def raw(self, text):
        self.process.stdin.write(text if isinstance(text, bytes) else text.encode())
        self.process.stdin.flush()

    def next(self, seconds=60):
        line = self.lines.get(timeout=seconds)
        assert line is not None, "the server has gone"
        return json.loads(line)

    def say(self, method, params=None, **rest):
        self.raw(json.dumps({"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params}), **rest}) + "\n")

    def ask(self, method, params=None):
        self.number += 1
        self.say(method, params, id=self.number)
        while (answer := self.next()).get("id") != self.number:
            pass
        return answer

    def call(self, tool, **arguments):
        """Text, and whether it failed."""
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert "result" in answer, answer
        return answer["result"]["content"][0]["text"], answer["result"]["isError"]

    def end(self):
        self.process.stdin.close()
        return self.process.wait(timeout=20)


def dump(folder):
    """A norm whose simplifier turns the difference from the mean into a sum."""
    text = """HloModule jit_norm

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT added = f32[] add(a, b)
}

ENTRY main {
  x = f32[8,64] parameter(0)
  zero = f32[] constant(0)
  total = f32[8] reduce(x, zero), dimensions={1}, to_apply=sum, metadata={op_name="jit(norm)/mean" source_file="norm.py" source_line=3}
  n = f32[] constant(64)
  nb = f32[8] broadcast(n), dimensions={}
  mean = f32[8] divide(total, nb)
  mb = f32[8,64] broadcast(mean), dimensions={0}
  one = f32[] constant(1)
  ones = f32[8,64] broadcast(one), dimensions={}
  scaled = f32[8,64] multiply(x, ones)
  centred = f32[8,64] subtract(scaled, mb), metadata={op_name="jit(norm)/sub" source_file="norm.py" source_line=4}
  ROOT square = f32[8,64] multiply(centred, centred)
}
"""
    simple = re.sub(r"  one.*\n  ones.*\n  scaled.*\n", "", text).replace("subtract(scaled, mb)", "subtract(x, mb)")
    wrong = simple.replace("subtract(x, mb)", "add(x, mb)")
    stages = {"before_optimizations": text, "0001.simplification.after_algsimp.before_cse": simple, "0002.simplification.after_sub-canonicalizer.before_dce": wrong,
              "after_optimizations": wrong.replace("HloModule jit_norm", "HloModule jit_norm, is_scheduled=true")}
    folder.mkdir()
    for name, stage in stages.items():
        (folder / f"module_0007.jit_norm.{name}.txt").write_text(stage)
    return folder


def found_fault(client, show=None):
    """open → stages → bisect → explain → diff."""
    def call(tool, **arguments):
        text, bad = client.call(tool, **arguments)
        expect(f"{tool} answers", not bad, text)
        if show is not None:
            show.append((tool, arguments, text))
        return text

    expect("open", "jit_norm" in call("open", id="xla_dump", budget=400))
    stages = call("stages", id="xla_dump")
    ids = re.findall(r"^  (\S+:\d{4}:\S+)  ", stages, re.M)
    expect("stages have counts", "15 -> 12 instructions, 0 new, 3 gone" in stages, stages)
    expect("stages have ids", len(ids) == 4 and ids[2].endswith(":0007:0002"), stages)
    bisect = call("bisect", id="xla_dump")
    expect("the pass is named", "sub-canonicalizer" in bisect and "centred" in bisect, bisect)
    explain = call("explain", id=f"{ids[2]}#centred")
    expect("what became of it", "add(" in explain and "norm.py:4" in explain, explain)
    diff = call("diff", a=ids[1], b=ids[2])
    expect("how the stages differ", "subtract" in diff and "add" in diff, diff)
    text = call("text", id=f"{ids[2]}#centred", around=1)
    expect("text around", "centred = " in text and len(text.splitlines()) <= 4, text)
    return ids


def protocol():
    client = Client()
    for version, given in (("2024-11-05", "2024-11-05"), ("2025-03-26", "2025-03-26"), ("2025-06-18", "2025-06-18"), ("2025-11-25", "2025-11-25"), ("1999-01-01", "2025-11-25")):
        r = client.ask("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}})["result"]
        expect(f"handshake {version}", (r["protocolVersion"], r["serverInfo"]["name"]) == (given, "hlo-replay") and "tools" in r["capabilities"], r)
    client.say("notifications/initialized")
    expect("ping", client.ask("ping")["result"] == {})
    tools = client.ask("tools/list")["result"]["tools"]
    names = {t["name"] for t in tools}
    expect("tools", {"open", "summary", "stages", "text", "diff", "explain", "search", "cost", "memory", "bisect"} <= names and "save" not in names, names)
    expect("schemas", all(t["inputSchema"]["type"] == "object" and t["annotations"]["readOnlyHint"] and t["description"] for t in tools))
    # Without a handshake.
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    r = client.ask("server/discover", {"_meta": meta})["result"]
    expect("discover", r["supportedVersions"] == ["2026-07-28"] and r["resultType"] == "complete" and r["ttlMs"] >= 0 and r["cacheScope"] == "private", r)
    r = client.ask("tools/list", {"_meta": meta})["result"]
    expect("list, stateless", r["resultType"] == "complete" and "ttlMs" in r and len(r["tools"]) == len(tools), list(r))
    e = client.ask("tools/list", {"_meta": {**meta, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}})["error"]
    expect("a later revision", e["code"] == -32022 and e["data"]["supported"] == ["2026-07-28"], e)
    expect("half an envelope", client.ask("server/discover", {})["error"]["code"] == -32602)
    # What is wrong gets its error, and nothing ends the server.
    expect("no such method", client.ask("nothing/here")["error"]["code"] == -32601)
    expect("no such tool", client.ask("tools/call", {"name": "rm", "arguments": {}})["error"]["code"] == -32602)
    expect("params that are none", client.ask("tools/call", [1])["error"]["code"] == -32602)
    expect("arguments that are none", client.ask("tools/call", {"name": "open", "arguments": 7})["error"]["code"] == -32602)
    for name, text, code in (("no JSON", "{nonsense\n", -32700), ("no UTF-8", b"{\"a\": \"\xff\"}\n", -32700), ("a batch", '[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n', -32600),
                             ("a number", "7\n", -32600), ("no version", '{"id":1,"method":"ping"}\n', -32600), ("an odd id", '{"jsonrpc":"2.0","id":{},"method":"ping"}\n', -32600),
                             ("deep", "[" * 100000 + "\n", -32600), ("huge", b"x" * (5 << 20) + b"\n", -32600)):
        client.raw(text)
        answer = client.next()
        expect(name, answer["error"]["code"] == code, answer)
    client.raw("\n\r\n")
    client.say("notifications/unknown", {"x": 1})
    client.say("notifications/cancelled", {"requestId": 12345})
    client.raw('{"jsonrpc":"2.0","id":9,"result":{}}\n')
    expect("still there", client.ask("ping")["result"] == {})
    for arguments, words in (({}, "missing"), ({"id": 7}, "is a text"), ({"id": "--help"}, "begin with"), ({"id": "/nowhere"}, "no such file"), ({"id": "x\0y"}, "no text")):
        text, bad = client.call("open", **arguments)
        expect(f"open {arguments}", bad and words in text, text)
    text, bad = client.call("summary", id=str(ROOT / "testdata/mul.hlo"), by="nonsense")
    expect("an argument that the command refuses", bad and "--by is" in text, text)
    with tempfile.TemporaryDirectory() as made:
        log = pathlib.Path(made) / "train.log"
        log.write_text("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 368.00MiB.\n")
        text, bad = client.call("memory", id=str(ROOT / "testdata/memory"), log=str(log), stages=True, budget=20000)
    expect("memory: a log and stages", not bad and "the temporaries of jit_train_step" in text and "stage by stage" in text, text)
    text, bad = client.call("memory", **{"id": str(ROOT / "testdata/memory"), "try": True, "budget": 20000})
    expect("memory: try", not bad and "tried: each change compiled by our passes" in text, text)
    text, bad = client.call("triage", id=str(ROOT / "testdata/mul.hlo"), seconds=20)
    expect("triage", not bad and "nothing: " in text and "sure: tested" in text, text)
    text, bad = client.call("triage", id=str(ROOT / "testdata/mul.hlo"), complaint="ugly")
    expect("triage of a complaint that is none", bad and "ugly" in text, text)
    expect("ends with its input", client.end() == 0)
    # What was asked is still answered, whole, and one line each.
    done = subprocess.run([TOOL, "mcp"], input='{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"text","arguments":{"id":"%s"}}}' % (ROOT / "testdata/mul.hlo"), capture_output=True, text=True, timeout=60)
    expect("from a pipe", done.returncode == 0 and "HloModule" in json.loads(done.stdout)["result"]["content"][0]["text"], done)


def budgets():
    client = Client()
    file = str(ROOT / "testdata/mobilenet_v1.hlo")
    text, _ = client.call("text", id=file)
    expect("within 2,000 tokens", 3000 < len(text) <= 6100, len(text))
    whole, cursor, answers = "", None, 0
    while answers < 500:
        text, bad = client.call("text", id=file, budget=500, **({"cursor": cursor} if cursor else {}))
        answers += 1
        more = re.search(r'^… \d+ more of \d+ lines: cursor "(\d+)"$', text, re.M)
        whole += text[:more.start()] if more else text
        if bad or not more:
            break
        cursor = more.group(1)
    printed = subprocess.run([TOOL, "print", "--no-metadata", file], capture_output=True, text=True, timeout=60).stdout
    expect("cursors give the whole text", [line[8:] for line in whole.splitlines()] == printed.rstrip("\n").splitlines(), (answers, len(whole), len(printed)))
    text, _ = client.call("text", id=file, first=3, last=5)
    expect("a range of lines", [line.split()[0] for line in text.splitlines()] == ["3", "4", "5"], text)
    text, _ = client.call("search", id=file, opcode="convolution", budget=300)
    found = re.search(r"^(\S+)#(\S+)$", text, re.M)
    expect("search gives ids", found and "cursor" in text and len(text) <= 900, text)
    text, bad = client.call("text", id=found.group(0), around=0)
    expect("which text takes", not bad and f"{found.group(2)} = " in text, text)
    expect("nothing fits", client.call("search", id=file, name="no such name")[0].startswith("nothing"))
    expect("a cursor that is none", client.call("text", id=file, cursor="x")[1])
    expect("behind the end", "no more" in client.call("text", id=file, cursor="99999999")[0])
    client.end()


def confined(tmp):
    inside, outside = tmp / "inside", tmp / "outside"
    inside.mkdir(), outside.mkdir()
    for folder in (inside, outside):
        (folder / "m.hlo").write_text("HloModule m\nENTRY e { ROOT p = f32[4] parameter(0) }\n")
    (inside / "link.hlo").symlink_to(outside / "m.hlo")
    (inside / "out").mkdir()
    client = Client(f"--root={inside}", f"--allow-write={inside / 'out'}")
    expect("relative to the root", not client.call("text", id="m.hlo")[1])
    expect("absolute below it", not client.call("text", id=str(inside / "m.hlo"))[1])
    for path in (outside / "m.hlo", "../outside/m.hlo", "link.hlo", "/etc/passwd", "/etc/passwd:x"):
        text, bad = client.call("text", id=str(path))
        expect(f"outside: {path}", bad and "below" in text and "root:" not in text, text)
    text, bad = client.call("save", id="m.hlo", file="a.json")
    expect("saved", not bad and json.loads((inside / "out" / "a.json").read_text()), text)
    for name in ("a.json", "../b.json", "/tmp/b.json", ".", "--force"):
        expect(f"not written: {name}", client.call("save", id="m.hlo", file=name)[1])
    text, bad = client.call("replay", id="m.hlo", folder="rec")
    expect("a recording", not bad and (inside / "out" / "rec" / "recording.json").exists(), text)
    client.end()
    expect("nothing else is there", sorted(p.name for p in inside.iterdir()) == ["link.hlo", "m.hlo", "out"] and sorted(p.name for p in (inside / "out").iterdir()) == ["a.json", "rec"])
    expect("no folder", subprocess.run([TOOL, "mcp", f"--root={tmp}/nowhere"], capture_output=True, stdin=subprocess.DEVNULL, timeout=20, check=False).returncode == 2)


def long_work(tmp):
    file = tmp / "long.hlo"
    file.write_text("""HloModule long
body { p = (s32[], f32[64,64]) parameter(0)  i = s32[] get-tuple-element(p), index=0  x = f32[64,64] get-tuple-element(p), index=1
  one = s32[] constant(1)  j = s32[] add(i, one)  y = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}  ROOT t = (s32[], f32[64,64]) tuple(j, y) }
cond { p = (s32[], f32[64,64]) parameter(0)  i = s32[] get-tuple-element(p), index=0  n = s32[] constant(2000000000)  ROOT c = pred[] compare(i, n), direction=LT }
ENTRY e { x = f32[64,64] parameter(0)  z = s32[] constant(0)  t = (s32[], f32[64,64]) tuple(z, x)  w = (s32[], f32[64,64]) while(t), condition=cond, body=body  ROOT r = f32[64,64] get-tuple-element(w), index=1 }
""")
    client = Client()
    client.say("tools/call", {"name": "diff", "arguments": {"a": str(file), "b": str(file), "run": True}, "_meta": {"progressToken": "p"}}, id="slow")
    told = client.next(20)
    expect("progress", told.get("method") == "notifications/progress" and told["params"]["progressToken"] == "p" and told["params"]["progress"] > 0, told)
    expect("others are answered meanwhile", client.ask("tools/list")["result"]["tools"])
    start = time.monotonic()
    client.say("notifications/cancelled", {"requestId": "slow"})
    # Its id is free again as soon as it has ended.
    while True:
        client.say("tools/call", {"name": "text", "arguments": {"id": str(ROOT / "testdata/mul.hlo")}}, id="slow")
        while (answer := client.next()).get("method"):
            pass
        if "result" in answer or time.monotonic() - start > 10:
            break
        time.sleep(0.05)
    expect("cancelled within a second", "result" in answer and time.monotonic() - start < 1.5 + 0.5, (time.monotonic() - start, answer))
    # An end of input while it works: it ends soon, its child too.
    client.say("tools/call", {"name": "diff", "arguments": {"a": str(file), "b": str(file), "run": True}}, id="more")
    time.sleep(0.3)
    client.process.terminate()
    client.process.wait(timeout=10)
    left = subprocess.run(["pgrep", "-f", str(file)], capture_output=True, text=True, check=False).stdout if pathlib.Path("/usr/bin/pgrep").exists() else ""
    expect("no child is left", not left.strip(), left)


with tempfile.TemporaryDirectory() as directory:
    work = pathlib.Path(directory)
    dump(work / "xla_dump")
    server = Client(f"--root={work}")
    exchange = []
    found_fault(server, exchange)
    expect("nothing was written", sorted(p.name for p in work.iterdir()) == ["xla_dump"] and len(list((work / "xla_dump").iterdir())) == 4)
    server.end()
    if "--transcript" in sys.argv:
        for tool, arguments, text in exchange:
            print(f"**{tool}** `{json.dumps(arguments).replace(str(work), '/tmp')}`\n\n```\n{text.replace(str(work), '/tmp').rstrip()}\n```\n")
        sys.exit(0)
    protocol()
    budgets()
    confined(work / "c") if (work / "c").mkdir() is None else None
    long_work(work)
print("mcp_test:", "FAILED" if failed else "passed")
sys.exit(1 if failed else 0)
