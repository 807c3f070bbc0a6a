"""What work costs at least: rates by type and precision, pairs counted once, calls of unknown cost, memories apart, the
card by name, and what does not fit it."""
import json
import os
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from command_line import data, expect, finish, run

N = 8192
PARTS = []


def part(f):
    PARTS.append(f)
    return f


def module(tmp, body, name="m", header="HloModule m, is_scheduled=true, num_partitions=8", before=""):
    f = pathlib.Path(tmp) / f"{name}.hlo"
    f.write_text(f"{header}\n{before}\nENTRY e {{\n{body}\n}}\n")
    return f


def answer(command, *words):
    code, out, err = run(command, "--json", *words)
    expect(f"{command} {words}: exit code 0", code == 0, out + err)
    return json.loads(out) if code == 0 else {}


def product(tmp, of, to=None, more="", name="dot"):
    return module(tmp, f" a = {of}[{N},{N}] parameter(0)\n b = {of}[{N},{N}] parameter(1)\n ROOT d = {to or of}[{N},{N}] "
                  f"dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}{more}", name, "HloModule m")


@part
def products_by_type_and_precision(tmp):
    highest, x3 = ", operand_precision={highest,highest}", ", algorithm=dot_bf16_bf16_f32_x3"
    for of, more, rates in (
            ("f64", "", {"H200": 67, "A100": 19.5, "V100": 7.8, "H100-PCIe": 51, "MI300X": 163.4}),
            ("f32", "", {"H200": 495, "A100": 156, "V100": 15.7, "T4": 8.1, "MI250X": 47.85, "v5e": 197}),
            ("f32", highest, {"H200": 67, "A100": 19.5, "V100": 15.7, "B200": 75}),
            ("f32", ", algorithm=dot_f32_f32_f32", {"H200": 67}),
            ("f32", ", algorithm=dot_tf32_tf32_f32", {"H200": 495}),
            ("f32", x3, {"H200": 989 / 3}),
            ("bf16", "", {"H200": 989, "A100": 312, "L4": 121, "V100": None, "MI300X": 1307.4, "v6e": 918}),
            ("f16", "", {"H200": 989, "A100": 312, "V100": 125, "T4": 65}),
            ("f8e4m3fn", "", {"H200": 1979, "B200": 4500, "A100": None, "MI355X": 5033.2}),
            ("f4e2m1fn", "", {"GB200": 10000, "H200": None}),
            ("s8", "", {"H200": 1979, "A100": 624, "T4": 130, "v5p": 918, "V100": None})):
        f = product(tmp, of, "f32" if of == "f4e2m1fn" else None, more)
        for card, rate in rates.items():
            told = answer("cost", f, f"--gpu={card}")
            seconds = told["least_seconds"]
            if rate is None:
                expect(f"{of}{more} on {card} is unknown", told["unknown_calls"] == 1 and not told["instructions"][0]["known"], told)
            else:
                expect(f"{of}{more} on {card} at {rate}", abs(2 * N**3 / seconds / 1e12 / rate - 1) < 1e-3,
                       2 * N**3 / seconds / 1e12)
    code, out, _ = run("cost", product(tmp, "f8e4m3fn"), "--gpu=A100")
    expect("what is unknown is said in the sum", "and 1 call of unknown cost" in out, out)


@part
def products_in_fusions_and_libraries(tmp):
    square = f"[{N},{N}]"
    dot = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    fused = (f"c {{\n p = f32{square} parameter(0)\n q = f32{square} parameter(1)\n"
             f" ROOT d = f32{square} dot(p, q), {dot}, operand_precision={{highest,highest}}\n}}")
    f = module(tmp, f" a = f32{square} parameter(0)\n b = f32{square} parameter(1)\n"
               f" ROOT d = f32{square} fusion(a, b), kind=kCustom, calls=c", before=fused, header="HloModule m")
    rate = 2 * N**3 / answer("cost", f, "--gpu=H200")["least_seconds"] / 1e12
    expect("f32 at highest in a Triton fusion", abs(rate / 67 - 1) < 1e-3, rate)
    for precision, right in (("DEFAULT", 495), ("HIGHEST", 67)):
        config = '{"gemm_backend_config":{"precision_config":{"operand_precision":["%s","%s"],"algorithm":"ALG_UNSET"}}}' % (precision, precision)
        f = module(tmp, f" a = f32{square} parameter(0)\n b = f32{square} parameter(1)\n ROOT d = (f32{square}, s8[4194304]) "
                   f'custom-call(a, b), custom_call_target="__cublas$gemm", backend_config={config}', header="HloModule m")
        rate = 2 * N**3 / answer("cost", f, "--gpu=H200")["least_seconds"] / 1e12
        expect(f"cuBLAS at {precision}", abs(rate / right - 1) < 1e-3, rate)


@part
def pairs_are_counted_once(tmp):
    part_, whole = 512 * 4096 * 2, 4096 * 4096 * 2
    groups = "channel_id=1, replica_groups=[1,8]<=[8], dimensions={0}, use_global_device_ids=true"
    one = module(tmp, f" p = bf16[512,4096] parameter(0)\n ROOT d = bf16[4096,4096] all-gather(p), {groups}", "one")
    pair = module(tmp, f" p = bf16[512,4096] parameter(0)\n s = (bf16[512,4096], bf16[4096,4096]) all-gather-start(p), {groups}\n"
                  " ROOT d = bf16[4096,4096] all-gather-done(s)", "pair")
    for f in (one, pair):
        expect(f"{f.stem}: bytes", answer("cost", f, "--gpu=H200")["bytes"] == part_ + whole)
    expect("of the pair one is asynchronous", answer("cost", pair, "--gpu=H200")["asynchronous"] == 1)
    size = 1024 * 4096 * 4
    kinds = module(tmp, " p = f32[1024,4096] parameter(0)\n"
                   " ars = f32[1024,4096] all-reduce-start(p), channel_id=1, replica_groups=[1,8]<=[8], use_global_device_ids=true, to_apply=add\n"
                   " ard = f32[1024,4096] all-reduce-done(ars)\n"
                   " cps = (f32[1024,4096], f32[1024,4096]) collective-permute-start(p), channel_id=2, source_target_pairs={{0,1},{1,0}}\n"
                   " cpd = f32[1024,4096] collective-permute-done(cps)\n"
                   " cs = (f32[1024,4096]{1,0:S(5)}, f32[1024,4096], u32[]) copy-start(p)\n cd = f32[1024,4096]{1,0:S(5)} copy-done(cs)\n"
                   " as = ((f32[1024,4096]), f32[128,4096]) async-start(p), calls=wrapped\n ad = f32[128,4096] async-done(as)\n"
                   " ROOT t = (f32[1024,4096], f32[1024,4096], f32[1024,4096]{1,0:S(5)}, f32[128,4096]) tuple(ard, cpd, cd, ad)",
                   "kinds", before="add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n"
                   "wrapped { q = f32[1024,4096] parameter(0)\n ROOT rs = f32[128,4096] reduce-scatter(q), channel_id=9, "
                   "replica_groups=[1,8]<=[8], dimensions={0}, use_global_device_ids=true, to_apply=add }")
    told = answer("cost", kinds, "--gpu=H200")
    moved = {k["name"]: k["bytes_read"] + k["bytes_written"] for k in told["instructions"]}
    expect("each kind at its start", moved == {"ars": 2 * size, "cps": 2 * size, "cs": size, "as": size + size // 8}, moved)
    longest = max(k["least_seconds"] for k in told["instructions"])
    expect("what runs at once is no sum", told["asynchronous"] == 4 and abs(told["least_seconds"] - longest) < 1e-12, told)
    code, out, _ = run("cost", kinds, "--gpu=H200")
    expect("…and it is said", "4 asynchronous operations may overlap with the others" in out, out)


@part
def library_calls(tmp):
    n, m = 512, 2048

    def flops(target, operands, result, more=""):
        lines = "".join(f" p{k} = {s} parameter({k})\n" for k, s in enumerate(operands))
        f = module(tmp, lines + f" ROOT c = {result} custom-call({', '.join(f'p{k}' for k in range(len(operands)))}), "
                   f'custom_call_target="{target}"{more}', header="HloModule m")
        told = answer("cost", f, "--gpu=H200")
        return None if told["unknown_calls"] else told["flops"]

    square, tall = f"f32[{n},{n}]", f"f32[{m},{n}]"
    for target, operands, result, right in (
            ("cusolver_geqrf_ffi", [tall], f"({tall}, f32[{n}])", 2 * n * n * (m - n / 3)),
            ("lapack_sgeqrf_ffi", [tall], f"({tall}, f32[{n}])", 2 * n * n * (m - n / 3)),
            ("lapack_sorgqr_ffi", [tall, f"f32[{n}]"], tall, 2 * n * n * (m - n / 3)),
            ("cusolver_potrf_ffi", [f"f64[{n},{n}]"], f"(f64[{n},{n}], s32[])", n**3 / 3),
            ("cusolver_getrf_ffi", [square], f"({square}, s32[{n}], s32[])", 2 * n**3 / 3),
            ("lapack_ssyevd_ffi", [square], f"({square}, f32[{n}], s32[])", 4 * n**3 / 3),
            ("cusolver_gesvd_ffi", [square], f"({square}, f32[{n}], s32[])", 8 * n**3 / 3),
            ("lapack_strsm_ffi", [square, square], square, n**3),
            ("__cublas$triangularSolve", [square, square], f"({square}, s8[4096])", n**3),
            ("Sharding", [square], square, 0),
            ("my_own_kernel", [square], square, None),
            ("__cudnn$fmhaSoftmax", [square, square, square], f"({square}, u8[0])", None)):
        told = flops(target, operands, result)
        expect(f"{target}: {right}", told is right if right is None else told is not None and abs(told - right) <= 1e-6 * right, told)
    # Groups of rows, slices of a sum: each element of the left side meets one matrix.
    numbers = '"dot_dimension_numbers":{"lhs_contracting_dimensions":["%d"],"rhs_contracting_dimensions":["%d"],"lhs_batch_dimensions":[],"rhs_batch_dimensions":[]}'
    for left, right, result, contracted, groups in (("f32[512,64]", "f32[8,64,32]", "f32[512,32]", (1, 1), '"lhs_ragged_dimensions":["0"],"rhs_group_dimensions":["0"]'),
                                                    ("f32[64,512]", "f32[512,32]", "f32[8,64,32]", (1, 0), '"lhs_ragged_dimensions":["1"],"rhs_group_dimensions":[]')):
        parameters = f" a = {left} parameter(0)\n b = {right} parameter(1)\n n = s32[8] parameter(2)\n"
        dims = "lhs_contracting_dims={%d}, rhs_contracting_dims={%d}, " % contracted + ("lhs_ragged_dims={0}, rhs_group_dims={0}" if contracted[1] else "lhs_ragged_dims={1}")
        config = '{"grouped_gemm_backend_config":{"ragged_dot_dimension_numbers":{' + numbers % contracted + "," + groups + "}}}"
        for body in (f" ROOT d = {result} ragged-dot(a, b, n), {dims}",
                     f' ROOT c = ({result}, s8[64]) custom-call(a, b, n), custom_call_target="__cublas$lt$groupedMatmul", backend_config={config}'):
            told = answer("cost", module(tmp, parameters + body, header="HloModule m"), "--gpu=H200")["flops"]
            expect(body[:40], told == 2 * 512 * 64 * 32, told)
    lines = f" p = {square} parameter(0)\n"
    for body, right in ((f" ROOT c = {square} cholesky(p), lower=true", n**3 / 3),
                        (f" ROOT c = {square} triangular-solve(p, p), left_side=true, lower=true, transpose_a=NO_TRANSPOSE", n**3)):
        expect(body, abs(answer("cost", module(tmp, lines + body, header="HloModule m"), "--gpu=H200")["flops"] / right - 1) < 1e-6)
    f = module(tmp, f" p = c64[16,{1024}] parameter(0)\n ROOT c = c64[16,1024] fft(p), fft_type=FFT, fft_length={{1024}}", header="HloModule m")
    expect("fft", answer("cost", f, "--gpu=H200")["flops"] == 16 * 5 * 1024 * 10)
    f = module(tmp, f" p = {square} parameter(0)\n"
               f' a = {square} custom-call(p), custom_call_target="mine"\n b = {square} negate(a)\n'
               f' ROOT c = {square} custom-call(b), custom_call_target="mine"', header="HloModule m, is_scheduled=true")
    for words in (("cost", f, "--gpu=H200"), ("summary", f, "--by=class", "--gpu=H200")):
        code, out, _ = run(*words)
        expect(f"{words[0]}: two calls of unknown cost", "and 2 calls of unknown cost" in out, out)
    rows = answer("summary", f, "--by=class", "--gpu=H200")["rows"]
    expect("summary --json counts them", sum(r["unknown_calls"] for r in rows) == 2, rows)


@part
def memories_apart(tmp):
    f = module(tmp, " w = f32[4096,4096]{1,0:S(5)} parameter(0)\n x = f32[1024,4096]{1,0} parameter(1)\n"
               " cs = (f32[4096,4096]{1,0}, f32[4096,4096]{1,0:S(5)}, u32[]) copy-start(w)\n t = f32[1024,4096]{1,0} tanh(x)\n"
               " cd = f32[4096,4096]{1,0} copy-done(cs)\n"
               " d = f32[1024,4096]{1,0} dot(t, cd), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
               " os = (f32[1024,4096]{1,0:S(5)}, f32[1024,4096]{1,0}, u32[]) copy-start(t)\n"
               " od = f32[1024,4096]{1,0:S(5)} copy-done(os)\n"
               " ROOT r = (f32[1024,4096]{1,0}, f32[1024,4096]{1,0:S(5)}) tuple(d, od)", header="HloModule m, is_scheduled=true")
    told = answer("memory", f)["modules"][0]
    mib = 1 << 20
    expect("device", abs(told["peak_bytes"] - 112 * mib) < mib, told["peak_bytes"] / mib)
    expect("host, while the device is at its peak", abs(told["host_at_peak_bytes"] - 64 * mib) < mib, told["host_at_peak_bytes"] / mib)
    expect("host", abs(told["host_peak_bytes"] - 80 * mib) < mib, told["host_peak_bytes"] / mib)
    expect("no host value is alive on the device", not any("S(5)" in v["shape"] or v["name"] == "w" for v in told["alive"]), told["alive"])
    rows = answer("summary", f, "--by=class")["rows"]
    expect("summaries have them apart", sum(r["host_at_peak_bytes"] for r in rows) == told["host_at_peak_bytes"], rows)
    code, out, _ = run("summary", f, "--by=class")
    expect("…in a column", "in host" in out.split("\n")[0], out)
    code, out, _ = run("memory", f)
    expect("told in words", "64.00MiB in the host's memory" in out, out)


@part
def what_may_lie_in_the_cache(tmp):
    def cached(side, card="H200"):
        array = f"f32[{side},{side}]"
        f = module(tmp, f" p = {array} parameter(0)\n a = {array} negate(p)\n ROOT b = {array} tanh(a)", header="HloModule m, is_scheduled=true")
        told = {k["name"]: k for k in answer("cost", f, f"--gpu={card}")["instructions"]}
        return told["a"], told["b"]

    mib = 1 << 20
    a, b = cached(1024)
    expect("what the kernel before wrote may lie there", b["bytes_cached"] == 4 * mib, b)
    expect("an argument too, from the call before", a["bytes_cached"] == 4 * mib, a)
    expect("the rest goes to memory", abs(b["least_seconds"] - 4 * mib / 4.8e12) < 1e-12, b)
    a, b = cached(8192)
    expect("no more than the cache holds", b["bytes_cached"] == 50 * mib, b)
    expect("what went by is gone", a["bytes_cached"] == 0, a)
    expect("an A100 has less of it", cached(8192, "A100")[1]["bytes_cached"] == 40 * mib)
    expect("of an MI250X nobody knows", cached(8192, "MI250X")[1]["bytes_cached"] == 0)
    # A loop's body reads what its last turn wrote.
    f = module(tmp, " p = f32[1024,1024] parameter(0)\n z = s32[] constant(0)\n t = (s32[], f32[1024,1024]) tuple(z, p)\n"
               ' w = (s32[], f32[1024,1024]) while(t), condition=cond, body=body, backend_config={"known_trip_count":{"n":"10"}}\n'
               " ROOT g = f32[1024,1024] get-tuple-element(w), index=1", header="HloModule m, is_scheduled=true",
               before="cond { s = (s32[], f32[1024,1024]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n n = s32[] constant(10)\n ROOT c = pred[] compare(i, n), direction=LT }\n"
               "body { s = (s32[], f32[1024,1024]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n x = f32[1024,1024] get-tuple-element(s), index=1\n"
               " o = s32[] constant(1)\n j = s32[] add(i, o)\n y = f32[1024,1024] negate(x)\n ROOT r = (s32[], f32[1024,1024]) tuple(j, y) }")
    told = {k["name"]: k for k in answer("cost", f, "--gpu=H200")["instructions"]}
    expect("a body reads what its last turn wrote", told["y"]["bytes_cached"] == 4 * mib and told["y"]["times"] == 10, told["y"])


@part
def what_a_fusion_does_not_read(tmp):
    def bytes_of(parameters, body, out, more=""):
        lines = "".join(f" p{k} = {p} parameter({k})\n" for k, p in enumerate(parameters))
        f = module(tmp, lines + f" ROOT f = {out} fusion({', '.join(f'p{k}' for k in range(len(parameters)))}), kind=kLoop, calls=c",
                   header="HloModule m, is_scheduled=true", before=more + "c {\n" + lines + body + "\n}\n")
        told = answer("cost", f, "--gpu=H200")["instructions"][0]
        return told["bytes_read"], told["bytes_written"]

    n, m = 8192, 4096
    row, half = f"f32[4,{n}]", f"f32[4,{m}]"
    whole, part_ = 4 * n * 4, 4 * m * 4

    def slices(*bounds):
        return "".join(f" h{k} = {half} slice(p0), slice={{[0:4], [{b}]}}\n" for k, b in enumerate(bounds))

    for what, body, out, right in (
            ("one half", slices(f"0:{m}") + f" ROOT r = {half} negate(h0)", half, part_),
            ("both halves", slices(f"0:{m}", f"{m}:{n}") + f" ROOT r = {half} add(h0, h1)", half, whole),
            ("two that overlap", slices(f"0:{m}", f"1:{m + 1}") + f" ROOT r = {half} add(h0, h1)", half, part_ + 16),
            ("every second one, twice", slices(f"0:{n}:2", f"1:{n}:2") + f" ROOT r = {half} add(h0, h1)", half, whole),
            ("of what is padded between, the padding", f" z = f32[] constant(0)\n d = f32[4,{2 * n}] pad(p0, z), padding=0_0x0_1_1\n"
             f" ROOT r = {row} slice(d), slice={{[0:4], [1:{2 * n}:2]}}", row, 0),
            ("…and the rest", f" z = f32[] constant(0)\n d = f32[4,{2 * n}] pad(p0, z), padding=0_0x0_1_1\n"
             f" ROOT r = {row} slice(d), slice={{[0:4], [0:{2 * n}:2]}}", row, whole),
            ("rows of a sum", f" z = f32[] constant(0)\n t = f32[4] reduce(p0, z), dimensions={{1}}, to_apply=add\n"
             " ROOT r = f32[1] slice(t), slice={[2:3]}", "f32[1]", n * 4),
            ("through a reshape", f" g = f32[4,64,128] reshape(p0)\n ROOT r = f32[4,8,128] slice(g), slice={{[0:4], [0:8], [0:128]}}",
             "f32[4,8,128]", 4 * 8 * 128 * 4),
            ("through a bitcast to another order", f" g = f32[{n},4]{{0,1}} bitcast(p0)\n ROOT r = f32[16,4]{{0,1}} slice(g), slice={{[0:16], [0:4]}}",
             "f32[16,4]{0,1}", 16 * 4 * 4),
            ("of a concatenation", f" d = f32[8,{n}] concatenate(p0, p0), dimensions={{0}}\n"
             f" ROOT r = f32[2,{n}] slice(d), slice={{[3:5], [0:{n}]}}", f"f32[2,{n}]", 2 * n * 4),
            ("between windows", " z = f32[] constant(0)\n"
             " ROOT r = f32[4,1024] reduce-window(p0, z), window={size=1x2 stride=1x8}, to_apply=add", "f32[4,1024]", whole // 4)):
        add = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n"
        expect(f"read: {what}", bytes_of([row], body, out, add)[0] == right, (bytes_of([row], body, out, add), right))
    # An array that stands twice is read once, alone and in a fusion.
    body = " ROOT d = f32[4,4] dot({}, {}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}"
    for what, f in (("product", module(tmp, f" x = {row} parameter(0)\n" + body.format("x", "x"), header="HloModule m")),
                    ("fused product", module(tmp, f" x = {row} parameter(0)\n ROOT f = f32[4,4] fusion(x, x), kind=kCustom, calls=c", header="HloModule m",
                                             before=f"c {{\n p = {row} parameter(0)\n q = {row} parameter(1)\n" + body.format("p", "q") + "\n}"))):
        told = answer("cost", f, "--gpu=H200")["instructions"][0]
        expect(f"{what} of an array with itself", told["bytes_read"] == whole, told)
    # Two results that are written where they lie.
    body = (f" i = s32[] parameter(4)\n z = s32[] constant(0)\n a = {row} dynamic-update-slice(p0, p2, z, i)\n"
            f" b = {row} dynamic-update-slice(p1, p3, z, i)\n ROOT t = ({row}, {row}) tuple(a, b)").replace(" i = s32[] parameter(4)\n", "").replace(", z, i)", ", z, p4)")
    told = bytes_of([row, row, "f32[4,16]", "f32[4,16]", "s32[]"], body, f"({row}, {row})")
    expect("two updates", told == (2 * 4 * 16 * 4 + 4, 2 * 4 * 16 * 4), told)


@part
def scatters_and_gathers(tmp):
    table, ids, rows = "f32[200000,32]", "s32[16384,1]", "f32[16384,1,32]"
    moved, index = 16384 * 32 * 4, 16384 * 4
    head = "HloModule m, is_scheduled=true"
    picks = "offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,32}"
    puts = "update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply="
    functions = ("add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n"
                 "put { a = f32[] parameter(0)\n ROOT r = f32[] parameter(1) }\n")
    plain = f" t = {table} parameter(0)\n i = {ids} parameter(1)\n u = {rows} parameter(2)\n"
    for how, read in (("add", 2 * moved + index), ("put", moved + index)):
        op = f" ROOT r = {table} scatter(t, i, u), {puts}{how}"
        for what, f in (("alone", module(tmp, plain + op, header=head, before=functions)),
                        ("fused", module(tmp, plain + f" ROOT f = {table} fusion(t, i, u), kind=kInput, calls=c", header=head,
                                         before=functions + "c {\n" + plain + op + "\n}"))):
            told = answer("cost", f, "--gpu=H200")["instructions"][0]
            expect(f"scatter {how} {what}", (told["bytes_read"], told["bytes_written"]) == (read, moved), told)
            # All indices may be the same row: what must come from memory is indices and updates, once.
            expect("…and at least", told["least_seconds"] <= max(5e-7, (moved + index) / 4.8e12), told)
    plain = f" t = {table} parameter(0)\n i = {ids} parameter(1)\n"
    op = f" ROOT g = {rows} gather(t, i), {picks}"
    for what, f in (("alone", module(tmp, plain + op, header=head)),
                    ("fused", module(tmp, plain + f" ROOT f = {rows} fusion(t, i), kind=kLoop, calls=c", header=head,
                                     before="c {\n" + plain + op + "\n}"))):
        told = answer("cost", f, "--gpu=H200")["instructions"][0]
        expect(f"gather {what}", told["bytes_written"] == moved and moved <= told["bytes_read"] <= moved + index, told)
        expect(f"gather {what}: at least what is written", told["least_seconds"] <= max(5e-7, (moved + index + 128) / 4.8e12), told)


@part
def what_a_loop_leaves_in_the_cache(tmp):
    big = "f32[1024,1024]"
    f = module(tmp, f" p = {big} parameter(0)\n q = f32[8] parameter(1)\n a = {big} negate(p)\n z = s32[] constant(0)\n t = (s32[], f32[8]) tuple(z, q)\n"
               ' w = (s32[], f32[8]) while(t), condition=cond, body=body, backend_config={"known_trip_count":{"n":"1000000"}}\n'
               f" x = f32[8] get-tuple-element(w), index=1\n b = {big} tanh(a)\n ROOT r = ({big}, f32[8]) tuple(b, x)", header="HloModule m, is_scheduled=true",
               before="cond { s = (s32[], f32[8]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n n = s32[] constant(1000000)\n ROOT c = pred[] compare(i, n), direction=LT }\n"
               "body { s = (s32[], f32[8]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n x = f32[8] get-tuple-element(s), index=1\n"
               " o = s32[] constant(1)\n j = s32[] add(i, o)\n y = f32[8] negate(x)\n ROOT r = (s32[], f32[8]) tuple(j, y) }")
    told = {k["name"]: k for k in answer("cost", f, "--gpu=H200")["instructions"]}
    expect("turns that write the same few bytes", told["b"]["bytes_cached"] == 4 << 20, told["b"])
    # A library's result, which another kernel reads in this turn and one read in the turn before.
    f = module(tmp, f" p = {big} parameter(0)\n c = ({big}, s8[64]) custom-call(p, p), custom_call_target=\"__cublas$gemm\"\n"
               f" g = {big} get-tuple-element(c), index=0\n ROOT n = {big} negate(g)", header="HloModule m, is_scheduled=true")
    told = {k["name"]: k for k in answer("cost", f, "--gpu=H200")["instructions"]}
    expect("what a library has just made", told["n"]["bytes_cached"] == 4 << 20, told["n"])


@part
def no_kernel_takes_less_than_a_launch(tmp):
    f = module(tmp, " p = f32[8] parameter(0)\n a = f32[8] negate(p)\n s = f32[8] custom-call(a), custom_call_target=\"Sharding\", sharding={replicated}\n"
               " ROOT b = f32[8] tanh(s)", header="HloModule m, is_scheduled=true")
    told = answer("cost", f, "--gpu=H200")
    rows = {k["name"]: (k["bound"], k["least_seconds"]) for k in told["instructions"]}
    expect("a kernel each, and a mark is none", rows["a"] == ("launch", 5e-7) and rows["b"] == ("launch", 5e-7) and rows["s"][1] == 0, rows)
    expect("an A100 was not measured", all(k["bound"] != "launch" for k in answer("cost", f, "--gpu=A100")["instructions"]))


@part
def gpus_that_no_row_names(tmp):
    f = product(tmp, "f32")
    told = answer("cost", f, "--gpu=P100")
    expect("priced by XLA's description", told["device"] == "P100" and told["unknown_calls"] == 0 and told["least_seconds"] > 0, told["device"])
    described = data.parent / "ir/target/targets/h200.pbtxt"
    here, by_name = answer("cost", f, f"--gpu={described}"), answer("cost", f, "--gpu=H200")
    expect("a description in a file", abs(here["least_seconds"] / by_name["least_seconds"] - 1) < 0.01, here["least_seconds"])
    code, _, err = run("cost", f, "--gpu=H2000")
    expect("no such card", code == 2 and "there are T4, V100" in err and "P100" in err, err)


@part
def the_gpu_is_a_value(tmp):
    f = module(tmp, " p = f32[4096,4096] parameter(0)\n t = f32[4096,4096] tanh(p)\n z = f32[] constant(0)\n"
               " r = f32[4096] reduce(t, z), dimensions={1}, to_apply=add\n ROOT n = f32[4096] negate(r)", "value",
               before="add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }", header="HloModule value")
    for card, cores in (("A100", 108), ("H200", 132)):
        out = tmp / card
        code, text, err = run("replay", f, f"--gpu={card}", "--formats=text,thunks,buffers", "-o", out)
        expect(f"replayed for {card}", code == 0, text + err)
        config = [x for x in out.iterdir() if x.name.endswith("gpu_target_config.pbtxt")]
        expect(f"{card}: the recording says what it is for", len(config) == 1 and f"core_count: {cores}" in config[0].read_text(), config)
        expect(f"{card}: recording.json names it", config[0].name in (out / "recording.json").read_text())
        opened = answer("open", out)["modules"][0]["overview"]
        expect(f"{card}: bounds of the recording", opened["device"] == card and card in opened["target"], opened)
        expect(f"{card}: cost", answer("cost", out)["device"] == card)
        expect(f"{card}: summary", answer("summary", out)["device"] == card)
    a, h = answer("cost", tmp / "A100")["least_seconds"], answer("cost", tmp / "H200")["least_seconds"]
    expect("an A100 is slower", a > 2 * h, (a, h))


@part
def what_does_not_fit(tmp):
    big = "f32[262144,262144]"
    f = module(tmp, f" p = {big} parameter(0)\n ROOT n = {big} negate(p)", "big", header="HloModule big")
    code, text, err = run("replay", f, "--gpu=H200", "--formats=text", "-o", tmp / "big")
    expect("replayed", code == 0, text + err)
    words = "does not fit: 512.00GiB allocated, H200 has 141 GiB"
    expect("memory --gpu of a larger card", answer("memory", tmp / "big", "--gpu=MI325X")["modules"][0]["too_large"]
           == "does not fit: 512.00GiB allocated, MI325X has 256 GiB")
    small = module(tmp, " p = f32[1024,1024] parameter(0)\n ROOT n = f32[1024,1024] negate(p)", "small", header="HloModule small")
    expect("memory --gpu of a file that fits", answer("memory", small, "--gpu=T4")["modules"][0]["too_large"] == "")
    code, out, err = run("open", tmp / "big")
    expect("the first line of the first minute", out.strip().split("\n")[0] == words, out[:300] + err)
    for command in ("memory", "summary"):
        code, out, err = run(command, tmp / "big")
        expect(f"{command} says so", words in out, out + err)
    expect("memory --json", answer("memory", tmp / "big")["modules"][0]["too_large"] == words)
    expect("summary --json", answer("summary", tmp / "big")["too_large"] == [words])
    expect("open --json", answer("open", tmp / "big")["modules"][0]["overview"]["too_large"] == words)


@part
def none_takes_less(tmp):
    # Kernels that an H200 ran, by jax's profiler: seconds in one call of the module, of the final modules that they are of.
    measured = json.loads((data / "measured/h200.json").read_text())
    for name, seconds in measured["seconds"].items():
        told = answer("cost", data / f"measured/{name}.hlo", f"--gpu={measured['card']}")
        bounds = {k["name"]: k["least_seconds"] for k in told["instructions"]}
        expect(f"{name}: all measured kernels are there", set(seconds) <= set(bounds), set(seconds) - set(bounds))
        for kernel, took in seconds.items():
            expect(f"{name} {kernel}: took {took:.3g}, at least {bounds.get(kernel, 0):.3g}", bounds.get(kernel, 0) <= took)


def rows_of(file, word):
    """Rows of a table of the sources, as lists of words."""
    text = re.sub(r"//.*", "", (data.parent / file).read_text())
    return [re.sub(r"\s+", " ", row) for row in re.findall(rf"^{word}\((.*?)\)$", text, re.M | re.S)]


def tables():
    kinds = ["f64", "f32", "tf32", "bf16", "f16", "f8", "f4", "s8"]
    cards = ["| GPU | memory | GB/s | of | " + " | ".join(kinds) + " | source |", "|---|---|---|---|" + "---|" * (len(kinds) + 1)]
    for row in rows_of("ir/target/cards.def", "CARD"):
        name, size, speed, vectors, products, sheet = re.fullmatch(
            r'"([^"]*)", "[^"]*", "[^"]*", \d+, \d+, (\d+), ([\d.]+), RATES\((.*?)\), RATES\((.*?)\), "([^"]*)"', row).groups()
        for what, rates in (("vectors", vectors), ("products", products)):
            known = dict(re.findall(r"\.(\w+) = ([\d.]+)", rates))
            cells = [name, size, speed] if what == "vectors" else ["", "", ""]
            cards.append("| " + " | ".join([*cells, what, *[known.get(k, "–") for k in kinds], sheet if what == "vectors" else ""]) + " |")
    measured = ["| class | bound from | measured over bound | kernels |", "|---|---|---|---|"]
    for row in rows_of("replay/report/kernels/measured_bounds.def", "MEASURED"):
        kind, size, low, high, count = [x.strip().strip('"') for x in row.split(",")]
        measured.append(f"| {kind} | {float(size) * 1e6:g} us | {float(low):g} to {float(high):g} | {count} |")
    return {"cards": cards, "measured": measured}


@part
def the_page_has_the_tables(_):
    page = data.parent / "docs/cards.md"
    text = page.read_text()
    for name, lines in tables().items():
        expect(f"{name}: rows were read", len(lines) > 4, lines)
        head, rest = text.split(f"<!-- {name}: written by HLO_UPDATE=1 tests/report/cost_test.py -->\n")
        body, tail = rest.split("<!-- end -->", 1)
        if os.environ.get("HLO_UPDATE"):
            text = head + f"<!-- {name}: written by HLO_UPDATE=1 tests/report/cost_test.py -->\n" + "\n".join(lines) + "\n<!-- end -->" + tail
            page.write_text(text)
        else:
            expect(f"docs/cards.md has the table of {name}", body.strip().split("\n") == lines, body)


for each in PARTS:
    with tempfile.TemporaryDirectory() as folder:
        each(pathlib.Path(folder))
finish("cost_test")
