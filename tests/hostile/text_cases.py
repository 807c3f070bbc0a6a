"""Texts and protos that broke the reader, the printer or the verifier."""
import zlib

from tool import run

HUGE = 2**62
OVER = [f"f32[{HUGE}]", f"f64[{2**60},2]", f"c128[{2**59}]", f"s4[{HUGE},4]", f"f32[{2**32},{2**32}]", f"bf16[<={HUGE}]"]
FITS = [f"f32[0,{HUGE},{HUGE}]", f"f32[{HUGE},{HUGE},0]", f"u8[{HUGE}]", f"pred[{HUGE}]", f"f32[{2**60}]"]
EXACT = ["verify", "print"]
EVERY = ["verify", "print", "fmt", "stats", "cost", "replay", "exec"]


def cases(tool, data, tmp):
    far = tmp / "far_layout.hlo"
    far.write_text("HloModule m\nENTRY e {\n  p = f32[37,301]{1,2147483647} parameter(0)\n"
                   "  ROOT t = f32[301,37]{1,0} transpose(p), dimensions={1,0}\n}\n")
    for command in ("verify", "exec"):
        yield f"an operand whose layout is none: {command}", lambda command=command: run(tool, command, far).expect(1, "p (parameter", "no permutation")
    def write(name, content):
        path = tmp / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def module(name, body):
        return write(name, f"HloModule m\n\nENTRY e {{\n{body}\n}}\n")

    def opt(file, passes):
        return run(tool, "opt", f"--passes={passes}", file)

    yield "a module as it should be", lambda: run(tool, "verify", data / "plain.hlo").expect(0)

    # --- sizes ---
    for n, shape in enumerate(OVER):
        file = module(f"over{n}.hlo", f"  ROOT p = {shape} parameter(0)")
        yield f"size of {shape} is refused", lambda f=file: run(tool, "verify", f).expect(1, "do not fit into 63 bits")
        yield f"size of {shape} is printed", lambda f=file, s=shape: run(tool, "print", f).expect(0, s)
        for command in ("exec", "cost", "replay"):
            yield f"size of {shape} in {command}", lambda f=file, c=command: run(
                tool, c, f, *(["-o", tmp / "o"] if c == "replay" else [])).expect(1, "do not fit into 63 bits")
        added = module(f"added{n}.hlo", f"  p = {shape} parameter(0)\n  ROOT r = {shape} add(p, p)")
        for words in ("exec --no-verify", "cost --no-verify"):
            yield f"size of {shape} in {words}", lambda f=added, w=words.split(): run(tool, *w, f).expect(2)
    for n, shape in enumerate(FITS):
        file = module(f"fits{n}.hlo", f"  ROOT p = {shape} parameter(0)")
        yield f"size of {shape} is verified", lambda f=file: run(tool, "verify", f).expect(0)
        yield f"size of {shape} is printed", lambda f=file, s=shape: run(tool, "print", f).expect(0, s)
    for name, line in {
            "pad": f"pad(a, z), padding=0_{2**63 - 1}_0",
            "pad between": f"pad(a, z), padding=0_0_{2**62}",
            "window": f"reduce-window(a, z), window={{size={2**62} pad={2**62}_{2**62} lhs_dilate={2**62}}}, to_apply=s",
            "window stride": f"reduce-window(a, z), window={{size=1 stride=1 rhs_dilate={2**63 - 1} pad={2**63 - 1}_1}}, to_apply=s",
            "concatenate": f"concatenate(b, b), dimensions={{0}}",
            "slice": f"slice(b), slice={{[0:{2**62}:{2**63 - 1}]}}",
            "dot": f"dot(b, b), lhs_contracting_dims={{}}, rhs_contracting_dims={{}}",
    }.items():
        for shape in ("", "f32[4] ", f"f32[{2**62}] "):
            file = write("sum.hlo".replace("sum", name.replace(" ", "_") + str(len(shape))), f"""HloModule m
s {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = f32[] add(x, y)
}}
ENTRY e {{
  a = f32[4] parameter(0)
  z = f32[] constant(0)
  b = u8[{2**62}] parameter(1)
  ROOT r = {shape}{line}
}}
""")
            for command in ("verify", "exec"):
                yield f"sizes summed by {name}, {shape or 'no shape'}: {command}", lambda f=file, c=command: run(tool, c, f)
    groups = module("groups.hlo", "  p = f32[4] parameter(0)\n  ROOT g = f32[8] all-gather(p), replica_groups={}, dimensions={0}").read_text()
    yield "devices without number", lambda: run(tool, "verify", write(
        "devices.hlo", groups.replace("HloModule m", f"HloModule m, replica_count={2**62}, num_partitions={2**62}")))

    # --- nesting ---
    yield "pbtxt nested in a field", lambda: run(tool, "verify", write(
        "deep.pbtxt", "hlo_module { name: \"m\" computations { " + "x { " * 20000 + "}" * 20002)).expect(2, "nested")
    shapes = "host_program_shape { result { element_type: TUPLE " + "tuple_shapes { element_type: TUPLE " * 20000 + "}" * 20002
    for command in ("verify", "print", "convert"):
        yield f"pbtxt nested in shapes: {command}", lambda c=command: run(
            tool, c, write("shapes.pbtxt", "hlo_module { name: \"m\" " + shapes + " }"), *([tmp / "o.hlo"] if c == "convert" else []))
    yield "json nested", lambda: run(tool, "verify", write("deep.json", "{\"a\":" + "[" * 200000)).expect(2)
    nested = {
        "shape": "ROOT p = " + "(" * 20000 + "f32[]" + ")" * 20000 + " parameter(0)",
        "operation": "p = f32[] parameter(0)\n ROOT r = f32[] " + "negate(" * 50000 + "p" + ")" * 50000,
        "sharding": "ROOT p = f32[] parameter(0), sharding=" + "{" * 50000,
        "origin": "ROOT p = f32[] parameter(0), origin={" + "(" * 50000 + "{\"a\"}" + ")" * 50000 + "}",
        "groups": "p = f32[] parameter(0)\n ROOT r = f32[] all-reduce(p), replica_groups=" + "{" * 50000,
        "dictionary": "ROOT p = f32[] parameter(0), frontend_attributes=" + "{" * 50000,
        "body": "ROOT p = f32[] parameter(0), to_apply=" + "{ROOT x = f32[] call(), to_apply=" * 20000,
        "literal": "ROOT p = f32[] constant(" + "{" * 50000,
        "layout": "ROOT p = f32[2]{0:T" + "(" * 50000,
        "inferred tuple": "p = f32[] parameter(0)\n t0 = tuple(p)\n" +
                          "\n".join(f" t{i + 1} = tuple(t{i})" for i in range(20000)),
    }
    for name, body in nested.items():
        for command in ("verify", "fmt"):
            yield f"nested {name}: {command}", lambda n=name, b=body, c=command: run(tool, c, module(f"nested_{n.replace(' ', '_')}.hlo", b)).expect(2)
    calls = ["HloModule m\nc0 {\n p = f32[] parameter(0)\n ROOT n = f32[] negate(p)\n}"]
    calls += [f"c{i} {{\n p = f32[] parameter(0)\n ROOT n = f32[] call(p), to_apply=c{i - 1}\n}}" for i in range(1, 20000)]
    calls += ["ENTRY e {\n p = f32[] parameter(0)\n ROOT n = f32[] call(p), to_apply=c19999\n}\n"]
    chain = "\n".join(calls)
    for words in ("verify", "print --style=canonical", "print", "stats", "opt --passes=cse", "opt --passes=dce", "cost"):
        yield f"calls 20,000 deep: {words}", lambda w=words.split(): run(tool, *w, write("calls.hlo", chain), seconds=60)

    # --- shared structure that is exponential when it is unfolded ---
    for words in ("verify", "print", "fmt", "stats", "cost", "convert", "opt --passes=cse"):
        for file in ("exp_tuple_short.hlo", "exp_call.hlo"):
            target = [tmp / "x.dot"] if words == "convert" else []
            expected = 2 if file.startswith("exp_tuple") else 0
            yield f"{file}: {words}", lambda w=words.split(), f=data / file, t=target, e=expected: run(tool, *w, f, *t).expect(e)
    for words, code in {"opt --passes=fusion": 0, "opt --passes=dot_decomposer": 0, "opt --passes=dce": 0,
                        "opt --passes=call-inliner": 2, "opt --passes=flatten-call-graph": 2,
                        "print --style=canonical": 2, "print --style=short": 0, "memory": 2, "summary": 0, "view --force -o " + str(tmp / "exp_call.html"): 0}.items():
        yield f"exp_call.hlo: {words}", lambda w=words.split(), c=code: run(tool, *w, data / "exp_call.hlo").expect(c)
    levels = ["HloModule m", "c0 {\n p0 = f32[] parameter(0)\n ROOT r0 = f32[] negate(p0)\n}"]
    levels += [f"c{i} {{\n p{i} = f32[] parameter(0)\n x{i} = f32[] fusion(p{i}), kind=kLoop, calls=c{i - 1}\n"
               f" ROOT r{i} = f32[] fusion(x{i}), kind=kLoop, calls=c{i - 1}\n}}" for i in range(1, 41)]
    levels += ["ENTRY e {\n p = f32[] parameter(0)\n ROOT r = f32[] fusion(p), kind=kLoop, calls=c40\n}\n"]
    shared = "\n".join(levels)
    yield "fusions that share bodies, drawn", lambda: run(tool, "convert", write("exp_fusion.hlo", shared), tmp / "f.dot")
    yield "fusions that share bodies, cost", lambda: run(tool, "cost", "--no-verify", write("exp_fusion.hlo", shared))

    # --- what takes shapes at their word asks the verifier first ---
    outside = "HloModule m, is_scheduled=true\nENTRY e {\n p = (f32[3], f32[3]) parameter(0)\n ROOT g = f32[3] get-tuple-element(p), index=%d\n}\n"
    for index in (2, -2, 1 << 40):
        yield f"element {index} of two: memory", lambda i=index: run(tool, "memory", write(f"element_{i}.hlo", outside % i)).expect(1)

    # --- tables that go round, numbers without bound ---
    for file in ("frame_cycle.hlo", "frame_cycle.pb"):
        for words in ("verify", "print", "fmt", "convert"):
            if words == "fmt" and file.endswith(".pb"):
                continue
            yield f"{file}: {words}", lambda w=words, f=data / file: run(tool, w, f, *([tmp / "x.hlo"] if w == "convert" else [])).expect(0)
    ring = (data / "frame_cycle.hlo").read_text()
    rows = "".join(f"{i} {{file_location_id=1 parent_frame_id={(i + 1) % 5 + 2}}}\n" for i in range(1, 6))
    longer = ring[:ring.index("StackFrames")] + "StackFrames\n" + rows + ring[ring.index("\nENTRY"):]
    yield "a cycle of five frames", lambda: run(tool, "print", write("ring.hlo", longer)).expect(0)
    yield "4e18 devices in a proto", lambda: run(tool, "convert", data / "replicas.hlo", tmp / "x.pb").expect(2, "devices")

    # --- archives ---
    def bomb(megabytes):
        pack = zlib.compressobj(9, zlib.DEFLATED, 31)
        block = b"HloModule m\n" + b" " * 2**20
        first = pack.compress(block) + pack.flush(zlib.Z_FULL_FLUSH)
        again = pack.compress(b" " * 2**20) + pack.flush(zlib.Z_FULL_FLUSH)
        return first + again * megabytes

    for name in ("bomb.hlo.gz", "bomb.pb.gz"):
        yield f"a gzip bomb: {name}", lambda n=name: run(tool, "verify", write(n, bomb(8000)), gigabytes=4).expect(2, "unpack")
    packed = zlib.compressobj(9, zlib.DEFLATED, 31)
    whole = packed.compress((data / "plain.hlo").read_bytes()) + packed.flush()
    yield "gzip whole", lambda: run(tool, "verify", write("whole.hlo.gz", whole)).expect(0)
    yield "gzip in two members", lambda: run(tool, "verify", write("two.hlo.gz", whole + zlib.compress(b"", wbits=31))).expect(0)
    for less in range(1, 12):
        yield f"gzip without its last {less} bytes", lambda n=less: run(
            tool, "verify", write("cut.hlo.gz", whole[:-n])).expect(2, "truncated")
    yield "gzip with a wrong checksum", lambda: run(tool, "verify", write(
        "sum.hlo.gz", whole[:-8] + bytes([whole[-8] ^ 1]) + whole[-7:])).expect(2, "damaged")
    for file in ("truncated.hlo.gz", "two_modules_cut.hlo.gz"):
        yield f"{file} is noticed", lambda f=data / file: run(tool, "verify", f).expect(2, "truncated")

    # --- protos ---
    for file, word in {"dangling_root.pb": "root", "dangling_entry.pb": "entry", "sched_dangling.pb": "schedules"}.items():
        yield f"{file} is noticed", lambda f=data / file, w=word: run(tool, "verify", f).expect(2, w)
    yield "a proto whose module has a long name", lambda: run(tool, "print", data / "pm_long.pb").expect(0)

    # --- errors that follow from errors ---
    yield "an error in a called computation", lambda: run(tool, "verify", data / "error_in_called.hlo").expect(2, "error:")
    broken = "c {\n p = f32[] parameter(0)\n ROOT q = f32[] nothing(p)\n}\n"
    for line in ("call(a), to_apply=c", "map(a), to_apply=c", "reduce(a, a), dimensions={}, to_apply=c",
                 "while(a), condition=c, body=c", "conditional(a, a, a), true_computation=c, false_computation=c",
                 "fusion(a), kind=kLoop, calls=c", "sort(a), dimensions={0}, to_apply=c", "scatter(a, a, a), to_apply=c",
                 "((f32[]), f32[]) async-start(a), calls=c", "custom-call(a), custom_call_target=\"x\", called_computations={c}",
                 "all-reduce(a), to_apply=c", "select-and-scatter(a, a, a), window={}, select=c, scatter=c"):
        for shape in ("", "f32[] "):
            text = f"HloModule m\n{broken}ENTRY e {{\n a = f32[] parameter(0)\n ROOT r = {'' if line[0] == '(' else shape}{line}\n}}\n"
            yield f"an error in what {line.split('(')[0] or 'async-start'} calls, {shape or 'no shape'}", lambda t=text: run(
                tool, "verify", write("broken.hlo", t)).expect(2, "nothing")

    # --- what passes took for granted ---
    yield "a layout that is no permutation", lambda: run(tool, "verify", data / "bad_layout_verified.hlo").expect(1, "permutation")
    for words in (["opt", "--passes=layout-assignment"], ["replay", "--force-replay", "-o", tmp / "cudnn"]):
        yield f"a convolution call without dim_labels: {words[0]}", lambda w=words: run(tool, *w, data / "cudnn_no_dim_labels.hlo").expect(0)
    yield "algsimp and a sharding", lambda: opt(data / "algsimp_sharding.hlo", "algsimp").expect(0)
    yield "algsimp and a schedule", lambda: opt(data / "algsimp_schedule.hlo", "algsimp").expect(0)
    yield "shifts of floats", lambda: run(tool, "exec", data / "shift_f32.hlo").expect(2)
    for command in ("exec", "opt", "cost", "replay"):
        yield f"{command} --help says what --no-verify risks", lambda c=command: run(tool, c, "--help").expect(0, "may crash")
    yield "a loop with both bodies in place", lambda: run(tool, "verify", write(
        "canonical.hlo", run(tool, "print", "--style=canonical", data.parent / "linear_regression_loop.hlo").out)).expect(0)
    late = """HloModule m
f {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  ROOT r = f32[4] add(x, y)
}
ENTRY e {
  p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  s = ((f32[4]), (), u32[]) async-start(p), calls=f
  u = ((f32[4], f32[4]), f32[4], u32[]) async-update(s, q)
  ROOT d = f32[4] async-done(u)
}
"""
    yield "operands bound late are verified", lambda: run(tool, "verify", write("late.hlo", late)).expect(0)
    for words in ("exec", "exec --backend=host", "exec --backend=emulated", "cost", "stats", "print"):
        yield f"operands bound late: {words}", lambda w=words.split(): run(tool, *w, write("late.hlo", late))
    head = "HloModule m\nENTRY e {\n  p = f32[4]{0:T(128)} parameter(0)\n  b = bf16[4] parameter(1)\n  z = bf16[] constant(0)\n"
    for line in ("f32[4] add(p, b)", "f32[4] add(b, b)", "bf16[4] copy(p)", "f32[6] pad(p, z), padding=1_1", "bf16[2,2] reshape(p)",
                 "f32[8] concatenate(p, b), dimensions={0}", "f32[4] clamp(z, p, z)", "bf16[4,2] broadcast(p), dimensions={0}"):
        file = f"{head}  ROOT r = {line}\n}}\n"
        yield f"mixed precision, {line}: verify", lambda f=file: run(tool, "verify", write("mixed.hlo", f)).expect(0)
        for backend in ("evaluator", "host", "emulated"):
            yield f"mixed precision, {line}: {backend}", lambda f=file, b=backend: run(
                tool, "exec", f"--backend={b}", write("mixed.hlo", f)).expect(2, "precision")
