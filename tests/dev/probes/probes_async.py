#!/usr/bin/env python3
"""Writes messages between four devices in every form that async-collective-creator and -annotator may meet: each opcode, of one array and of
several, in loops, branches, calls and asynchronous calls, with control dependencies, frontend attributes, metadata and configurations.

  probes_async.py HLO_REPLAY DIR          DIR/*.hlo, and DIR/*.hlo.pb for XLA

Then `oracle_proto.py DUMP --only async-collective-creator,async-collective-annotator --partitions 4 DIR/*.pb` and agreement.py over DUMP/*."""
import pathlib
import subprocess
import sys

ALL, PAIR, GLOBAL = "{{0,1,2,3}}", "{{0,1},{2,3}}", "use_global_device_ids=true"
SUM = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n"
RING = "source_target_pairs={{0,1},{1,2},{2,3},{3,0}}"


def messages(groups=ALL, n=4):
    """name → (operands, result, text behind the operands)"""
    own = f"channel_id=1, replica_groups={groups}"
    one, two = ["f32[8,4]"], ["f32[8,4]", "f32[16]"]
    return {
        "all-reduce": (one, "f32[8,4]", f"{own}, {GLOBAL}, to_apply=add"),
        "all-reduce of two": (two, "(f32[8,4], f32[16])", f"{own}, {GLOBAL}, to_apply=add"),
        "all-gather": (one, f"f32[{8 * n},4]", f"{own}, dimensions={{0}}, {GLOBAL}"),
        "all-gather of columns": (one, f"f32[8,{4 * n}]", f"{own}, dimensions={{1}}, {GLOBAL}"),
        "all-gather of two": (two, f"(f32[{8 * n},4], f32[{16 * n}])", f"{own}, dimensions={{0}}, {GLOBAL}"),
        "reduce-scatter": (one, f"f32[{8 // n},4]", f"{own}, dimensions={{0}}, {GLOBAL}, to_apply=add"),
        "reduce-scatter of two": (two, f"(f32[{8 // n},4], f32[{16 // n}])", f"{own}, dimensions={{0}}, {GLOBAL}, to_apply=add"),
        "all-to-all": (one, "f32[8,4]", f"{own}, dimensions={{0}}"),
        "all-to-all of parts": (["f32[2,4]"] * n, "(" + ", ".join(["f32[2,4]"] * n) + ")", own),
        "collective-permute": (one, "f32[8,4]", f"channel_id=1, {RING}"),
        "collective-permute of two": (two, "(f32[8,4], f32[16])", f"channel_id=1, {RING}"),
        "collective-broadcast": (one, "f32[8,4]", own),
        "ragged-all-to-all": (["f32[8,4]", "f32[32,4]"] + [f"s64[{n}]"] * 4, "f32[32,4]", own),
    }


def program(name, kind, extra="", root=None, groups=ALL, n=4, wrap=None):
    operands, result, rest = messages(groups, n)[kind]
    op = kind.split(" ")[0]
    lines = [f"p{k} = {shape} parameter({k})" for k, shape in enumerate(operands)]
    args = ", ".join(f"p{k}" for k in range(len(operands)))
    message = f"m = {result} {op}({args}), {rest}{extra}"
    return lines, message, result, operands


def entry(lines, last):
    return "ENTRY main {\n" + "".join(f"  {line}\n" for line in lines) + f"  ROOT {last}\n}}\n"


def cases():
    out = {}
    for kind in messages():
        lines, message, result, operands = program("", kind)
        first = operands[0]
        out[f"root {kind}"] = entry(lines, message)
        for named, groups, n in (("near", PAIR, 2), ("far", "{{0,2},{1,3}}", 2), ("all", "{}", 4)):
            if "permute" not in kind:
                some, said, _, _ = program("", kind, groups=groups, n=n)
                said = said if groups != "{}" else said.replace(f", {GLOBAL}", "")
                out[f"{named} {kind}"] = entry(some, said)
        # Attributes that travel, and those that do not.
        out[f"metadata {kind}"] = entry(lines, message + ', metadata={op_name="jit(f)/sum" source_file="f.py" source_line=7}')
        out[f"frontend {kind}"] = entry(lines, message + ', frontend_attributes={_scheduling_group_id="1",note="kept"}')
        out[f"config {kind}"] = entry(lines, message + ', backend_config={"collective_backend_config":{"is_pipelined":true,"backend":"NVSHMEM"}}')
        # Among other work, which runs before, beside and behind it.
        out[f"beside {kind}"] = entry(lines + [message, f"n = {first} negate(p0)"], f"t = ({result}, {first}) tuple(m, n)")
        out[f"before {kind}"] = entry(lines + [f"n = {first} negate(p0)", message + ", control-predecessors={n}"], f"t = ({result}, {first}) tuple(m, n)")
        out[f"behind {kind}"] = entry(lines + [message, f"n = {first} negate(p0), control-predecessors={{m}}"], f"t = ({result}, {first}) tuple(m, n)")
        out[f"both ends {kind}"] = entry(lines + [f"a = {first} abs(p0)", message + ", control-predecessors={a}", f"n = {first} negate(a), control-predecessors={{m}}"], f"t = ({result}, {first}) tuple(m, n)")
        out[f"unused {kind}"] = entry(lines + [message], f"n = {first} negate(p0)")
        # Twice, in a row of waits.
        again = message.replace("m = ", "q = ").replace("channel_id=1", "channel_id=2")
        out[f"twice {kind}"] = entry(lines + [message, again + ", control-predecessors={m}"], f"t = ({result}, {result}) tuple(m, q)")
        # In a call, a branch and a loop.
        arguments = ", ".join(f"p{k}" for k in range(len(operands)))
        inner = "f {\n" + "".join(f"  {line}\n" for line in lines) + f"  ROOT {message}\n}}\n"
        out[f"called {kind}"] = inner + entry(lines, f"c = {result} call({arguments}), to_apply=f")
        state = "(" + ", ".join(operands) + ")"
        taken = "".join(f"  p{k} = {shape} get-tuple-element(t), index={k}\n" for k, shape in enumerate(operands))
        branch = f"f {{\n  t = {state} parameter(0)\n{taken}  ROOT {message}\n}}\n"
        other = f"g {{\n  t = {state} parameter(0)\n{taken}  ROOT {again}\n}}\n"
        packed = [f"t = {state} tuple({arguments})"]
        out[f"branch {kind}"] = branch + other + entry(lines + [f"which = pred[] parameter({len(operands)})"] + packed, f"c = {result} conditional(which, t, t), true_computation=f, false_computation=g")
        carried = ["s32[]"] + operands + [result]
        whole = "(" + ", ".join(carried) + ")"
        body = f"body {{\n  s = {whole} parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
        body += "".join(f"  p{k} = {shape} get-tuple-element(s), index={k + 1}\n" for k, shape in enumerate(operands))
        body += f"  {message}\n  one = s32[] constant(1)\n  j = s32[] add(i, one)\n  ROOT r = {whole} tuple(j, {arguments}, m)\n}}\n"
        condition = f"cond {{\n  s = {whole} parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  n = s32[] constant(3)\n  ROOT lt = pred[] compare(i, n), direction=LT\n}}\n"
        start = lines + ["zero = s32[] constant(0)", f"was = {result} parameter({len(operands)})", f"init = {whole} tuple(zero, {arguments}, was)"]
        out[f"loop {kind}"] = condition + body + entry(start, f"w = {whole} while(init), condition=cond, body=body")
        # Asynchronous already.
        inside = "{" + ", ".join(operands) + "}"
        inside = "((" + ", ".join(operands) + f"), {result})"
        out[f"wrapped {kind}"] = inner + entry(lines + [f"s = {inside} async-start({arguments}), calls=f"], f"d = {result} async-done(s)")
    extra = {
        "layouts of the operand": entry(["p0 = f32[8,4]{0,1} parameter(0)"], f"m = f32[32,4]{{0,1}} all-gather(p0), channel_id=1, replica_groups={ALL}, dimensions={{0}}, {GLOBAL}, constrain_layout=true"),
        "sum of types": SUM.replace("f32", "bf16") + entry(["p0 = bf16[8] parameter(0)"], f"m = bf16[8] all-reduce(p0), channel_id=1, replica_groups={ALL}, {GLOBAL}, to_apply=add"),
        "no channel": entry(["p0 = f32[8] parameter(0)"], "m = f32[8] all-reduce(p0), replica_groups={}, to_apply=add"),
        "one sum for all": entry(["p0 = f32[8] parameter(0)", "p1 = s32[4] parameter(1)", f"m = f32[8] all-reduce(p0), channel_id=1, replica_groups={ALL}, {GLOBAL}, to_apply=add"],
                                f"t = f32[32] all-gather(m), channel_id=2, replica_groups={ALL}, dimensions={{0}}, {GLOBAL}"),
        "narrow": entry(["p0 = u4[8,4]{1,0:E(4)} parameter(0)"], f"m = u4[32,4]{{1,0:E(4)}} all-gather(p0), channel_id=1, replica_groups={ALL}, dimensions={{0}}, {GLOBAL}"),
        "in place": entry(["p0 = f32[8,4] parameter(0)", "p1 = f32[16,4] parameter(1)", "z = s32[] constant(0)", "ti = (s32[], s32[]) tuple(z, z)", "to = (s32[], s32[]) tuple(z, z)"],
                          f"m = f32[16,4] collective-permute(p0, p1, ti, to), channel_id=1, {RING}, slice_sizes={{{{4,4}}}}"),
        "scalar": entry(["p0 = f32[] parameter(0)"], f"m = f32[] all-reduce(p0), channel_id=1, replica_groups={ALL}, {GLOBAL}, to_apply=add"),
        "started already": entry(["p0 = f32[8] parameter(0)", f"s = (f32[8], f32[32]) all-gather-start(p0), channel_id=1, replica_groups={ALL}, dimensions={{0}}, {GLOBAL}"], "d = f32[32] all-gather-done(s)"),
        "started already, sum": entry(["p0 = f32[8] parameter(0)", f"s = f32[8] all-reduce-start(p0), channel_id=1, replica_groups={ALL}, {GLOBAL}, to_apply=add"], "d = f32[8] all-reduce-done(s)"),
        "started already, permute": entry(["p0 = f32[8] parameter(0)", f"s = (f32[8], f32[8]) collective-permute-start(p0), channel_id=1, {RING}"], "d = f32[8] collective-permute-done(s)"),
        "started, no message": "f {\n  p0 = f32[8] parameter(0)\n  ROOT n = f32[8] negate(p0)\n}\n" + entry(["p0 = f32[8] parameter(0)", "s = ((f32[8]), f32[8]) async-start(p0), calls=f"], "d = f32[8] async-done(s)"),
    }  # fmt: skip
    return out | extra


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in cases().items():
        file = folder / ("".join(c if c.isalnum() else "_" for c in name) + ".hlo")
        header = f"HloModule {file.stem}, num_partitions=4\n"
        file.write_text(header + (SUM if "to_apply=add" in text and "add {" not in text else "") + text)
        done = subprocess.run([sys.argv[1], "convert", file, file.with_suffix(".hlo.pb")], capture_output=True, text=True)
        if done.returncode:
            print(f"{file}: {done.stderr.strip()}")


if __name__ == "__main__":
    main()
