#!/usr/bin/env python3
"""Writes modules for the passes that other probes reach in fewer than ten changes:

  probes_rest.py DIR        writes DIR/PASS/NAME.hlo

Each is compiled with its pass alone (what runs in front of it would take its work away):

  ORACLE_PYTHON oracle_compile.py DUMP --flags=--xla_enable_hlo_passes_only=PASS DIR/PASS/*.hlo

A pass of a nested pipeline needs the pipeline's name beside it (simplification,scatter-slice-simplifier); what else must
run stands above the modules. while-loop-invariant-code-motion is in XLA's pipeline for the CPU alone
(`xla.py compile --backend cpu`), its sister of dear operations in none."""
import itertools
import pathlib
import sys

OUT = pathlib.Path(sys.argv[1])


def write(which, name, text):
    (OUT / which).mkdir(parents=True, exist_ok=True)
    (OUT / which / f"{name}.hlo").write_text("HloModule m\n" + text)


def entry(parameters, body, functions=""):
    """parameters: "x:f32[4] y:…"; body: its last line is the root."""
    lines = [f"  {p.split(':')[0]} = {p.split(':')[1]} parameter({i})" for i, p in enumerate(parameters.split())]
    lines += ["  " + line for line in body.strip().split("\n")]
    at = lines[-1].index(lines[-1].strip())
    lines[-1] = lines[-1][:at] + "ROOT " + lines[-1].strip()
    return functions + "\nENTRY main {\n" + "\n".join(lines) + "\n}\n"


def combiner(op, t, name="f"):
    return f"{name} {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n  ROOT r = {t}[] {op}(a, b)\n}}\n"


# --- dot_dimension_sorter ---
for t, (l, r, out, lc, rc, more) in itertools.product(
    ("f32", "bf16", "s32"),
    [
        ("4,8,16", "8,16,5", "4,5", "2,1", "1,0", ""),
        ("8,16,4", "5,8,16", "4,5", "1,0", "2,1", ""),
        ("8,16,4", "16,8,5", "4,5", "1,0", "0,1", ""),
        ("4,8,16", "16,8,5", "4,5", "2,1", "0,1", ""),
        ("4,2,8,3", "3,2,8,5", "4,5", "3,1,2", "0,1,2", ""),
        ("2,8,3,4", "8,2,3,5", "4,5", "2,0,1", "2,1,0", ""),
        ("7,4,8,16", "7,8,16,5", "7,4,5", "3,2", "2,1", "lhs_batch_dims={0}, rhs_batch_dims={0}, "),
        ("8,4,16", "16,5,8", "4,5", "2,0", "0,2", ""),
        ("4,6,8", "8,6,5", "4,5", "2,1", "0,1", ""),
    ],
):
    write("dot_dimension_sorter", f"{t}_{lc}_{rc}_{len(l)}_{len(more)}".replace(",", ""), entry(
        f"l:{t}[{l}] r:{t}[{r}]", f"d = {t}[{out}] dot(l, r), {more}lhs_contracting_dims={{{lc}}}, rhs_contracting_dims={{{rc}}}"))

# --- operand_converter ---
for a, b in [("bf16", "f32"), ("f32", "bf16"), ("f16", "f32"), ("f32", "f64"), ("f64", "f32"), ("f16", "f64"), ("bf16", "f16"),
             ("s8", "s32"), ("s16", "s32"), ("s32", "f32"), ("s8", "u8"), ("s8", "bf16"), ("f8e4m3fn", "bf16"), ("f8e4m3fn", "f8e5m2"),
             ("bf16", "f64"), ("u8", "s32"), ("c64", "c128"), ("pred", "f32"), ("s4", "bf16"), ("bf16", "s8")]:
    for out in ("f32", "bf16", "s32"):
        write("operand_converter", f"{a}_{b}_{out}", entry(
            f"l:{a}[8,20] r:{b}[20,9]", f"d = {out}[8,9] dot(l, r), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"))
for a, b, lc, rc, l, r, out in [("bf16", "f32", "0", "1", "20,8", "9,20", "8,9"), ("f32", "bf16", "1", "0", "8,20", "20", "8"), ("f16", "f32", "2", "1", "3,8,20", "3,20,9", "3,8,9")]:
    batch = "lhs_batch_dims={0}, rhs_batch_dims={0}, " if len(out) == 5 else ""
    write("operand_converter", f"{a}_{b}_{len(l)}_{len(out)}", entry(
        f"l:{a}[{l}] r:{b}[{r}]", f"d = f32[{out}] dot(l, r), {batch}lhs_contracting_dims={{{lc}}}, rhs_contracting_dims={{{rc}}}"))

# --- permutation_sort_simplifier ---
for n, key, value, pair in itertools.product((4, 16, 33), ("s32", "f32"), ("s32", "f32", "bf16"), ("LT", "GT")):
    two = lambda name, t, u, how: (f"{name} {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n  c = {u}[] parameter(2)\n  d = {u}[] parameter(3)\n"
                                   f"  ROOT r = pred[] compare(a, b), direction={how}\n}}\n")
    write("permutation_sort_simplifier", f"n{n}_{key}_{value}_{pair}", entry(f"k:{key}[{n}] v:{value}[{n}]", f"""
io = s32[{n}] iota(), iota_dimension=0
s = ({key}[{n}], s32[{n}]) sort(k, io), dimensions={{0}}, to_apply=lt
perm = s32[{n}] get-tuple-element(s), index=1
again = (s32[{n}], {value}[{n}]) sort(perm, v), dimensions={{0}}, to_apply=lt2
r = {value}[{n}] get-tuple-element(again), index=1""", two("lt", key, "s32", "LT") + two("lt2", "s32", value, pair)))

# --- scatter-slice-simplifier ---
for op, t, to, form in itertools.product(("add", "maximum"), ("f32", "s32"), (8, 5), ("spread", "parameter", "negated", "twice", "padded_rows", "two_cuts")):
    if form == "padded_rows":
        write("scatter-slice-simplifier", f"{op}_{t}_{to}_{form}", entry(f"a:{t}[9,4] i:s32[4,1] u:{t}[4,4]", f"""
g = {t}[9,4] scatter(a, i, u), update_window_dims={{1}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=f
s = {t}[{to},4] slice(g), slice={{[0:{to}], [0:4]}}""", combiner(op, t)))
        continue
    tail = {
        "spread": f"s = {t}[{to}] slice(g), slice={{[0:{to}]}}",
        "parameter": f"s = {t}[{to}] slice(g), slice={{[0:{to}]}}",
        "negated": f"n = {t}[9] negate(g)\ns = {t}[{to}] slice(n), slice={{[0:{to}]}}",
        "twice": f"s = {t}[{to}] slice(g), slice={{[0:{to}]}}\nr = {t}[{to}] slice(g), slice={{[0:{to}]}}\nq = {t}[{to}] multiply(s, r)",
        "two_cuts": f"s = {t}[{to}] slice(g), slice={{[0:{to}]}}\nr = {t}[4] slice(g), slice={{[0:4]}}\nq = ({t}[{to}], {t}[4]) tuple(s, r)",
    }[form]
    head = f"b = {t}[9] broadcast(z), dimensions={{}}" if form != "parameter" else f"b = {t}[9] copy(y)"
    write("scatter-slice-simplifier", f"{op}_{t}_{to}_{form}", entry(f"z:{t}[] i:s32[4] u:{t}[4] y:{t}[9]", f"""{head}
g = {t}[9] scatter(b, i, u), update_window_dims={{}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=f
{tail}""", combiner(op, t)))

# --- select_and_scatter_expander ---
for t, select, scatter, (x, s, w) in itertools.product(("f32", "s32"), ("GE", "LE"), ("add", "multiply"), [
        ("8", "4", "size=2 stride=2"), ("7,6", "3,3", "size=2x2 stride=2x2"), ("6,6", "3,3", "size=2x2 stride=2x2"),
        ("1,6,6,2", "1,3,3,2", "size=1x3x3x1 stride=1x2x2x1 pad=0_0x1_0x1_0x0_0")]):
    chooser = f"sel {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n  ROOT r = pred[] compare(a, b), direction={select}\n}}\n"
    write("select_and_scatter_expander", f"{t}_{select}_{scatter}_{len(x)}_{len(w)}", entry(f"x:{t}[{x}] s:{t}[{s}] z:{t}[]", f"""
r = {t}[{x}] select-and-scatter(x, s, z), window={{{w}}}, select=sel, scatter=f""", chooser + combiner(scatter, t)))

# --- batched_gather_scatter_normalizer ---
for t, n in itertools.product(("f32", "s8"), (3, 5)):
    write("batched_gather_scatter_normalizer", f"gather1_{t}_{n}", entry(f"a:{t}[{n},8] i:s32[{n},2,1]", f"""
g = {t}[{n},2] gather(a, i), offset_dims={{}}, collapsed_slice_dims={{1}}, start_index_map={{1}}, operand_batching_dims={{0}}, start_indices_batching_dims={{0}}, index_vector_dim=2, slice_sizes={{1,1}}"""))
    write("batched_gather_scatter_normalizer", f"gather2_{t}_{n}", entry(f"a:{t}[{n},8,6] i:s32[4,{n}]", f"""
g = {t}[4,{n},6] gather(a, i), offset_dims={{2}}, collapsed_slice_dims={{1}}, start_index_map={{1}}, operand_batching_dims={{0}}, start_indices_batching_dims={{1}}, index_vector_dim=2, slice_sizes={{1,1,6}}"""))
    write("batched_gather_scatter_normalizer", f"gather3_{t}_{n}", entry(f"a:{t}[{n},8,2,6] i:s64[2,{n},4,2]", f"""
g = {t}[2,{n},4,3] gather(a, i), offset_dims={{3}}, collapsed_slice_dims={{1}}, start_index_map={{1,3}}, operand_batching_dims={{0,2}}, start_indices_batching_dims={{1,0}}, index_vector_dim=3, slice_sizes={{1,1,1,3}}"""))
    for unique in ("", ", unique_indices=true", ", indices_are_sorted=true"):
        write("batched_gather_scatter_normalizer", f"scatter1_{t}_{n}_{len(unique)}", entry(f"a:{t}[{n},8] i:s32[{n},2,1] u:{t}[{n},2]", f"""
g = {t}[{n},8] scatter(a, i, u), update_window_dims={{}}, inserted_window_dims={{1}}, scatter_dims_to_operand_dims={{1}}, input_batching_dims={{0}}, scatter_indices_batching_dims={{0}}, index_vector_dim=2{unique}, to_apply=f""", combiner("add", t)))
    write("batched_gather_scatter_normalizer", f"scatter2_{t}_{n}", entry(f"a:{t}[{n},8,6] i:s32[4,{n}] u:{t}[4,{n},6]", f"""
g = {t}[{n},8,6] scatter(a, i, u), update_window_dims={{2}}, inserted_window_dims={{1}}, scatter_dims_to_operand_dims={{1}}, input_batching_dims={{0}}, scatter_indices_batching_dims={{1}}, index_vector_dim=2, to_apply=f""", combiner("maximum", t)))

# --- gpu_scatter_expander, scatter_expander on its own ---
for form, op in itertools.product(("rows", "elements", "one", "windows", "two"), ("add", "multiply")):
    t = "c128"
    text = {
        "rows": (f"a:{t}[8,6] i:s32[4,1] u:{t}[4,6]", f"{t}[8,6] scatter(a, i, u), update_window_dims={{1}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1"),
        "elements": (f"a:{t}[8] i:s32[4] u:{t}[4]", f"{t}[8] scatter(a, i, u), update_window_dims={{}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1"),
        "one": (f"a:{t}[8,6] i:s32[2] u:{t}[2,3]", f"{t}[8,6] scatter(a, i, u), update_window_dims={{0,1}}, inserted_window_dims={{}}, scatter_dims_to_operand_dims={{0,1}}, index_vector_dim=0"),
        "windows": (f"a:{t}[8,6] i:s32[4,2] u:{t}[4,2,3]", f"{t}[8,6] scatter(a, i, u), update_window_dims={{1,2}}, inserted_window_dims={{}}, scatter_dims_to_operand_dims={{0,1}}, index_vector_dim=1"),
        "two": (f"a:{t}[8,6] i:s32[3,4,2] u:{t}[3,4]", f"{t}[8,6] scatter(a, i, u), update_window_dims={{}}, inserted_window_dims={{0,1}}, scatter_dims_to_operand_dims={{0,1}}, index_vector_dim=2"),
    }[form]
    write("gpu_scatter_expander", f"{form}_{op}", entry(text[0], f"g = {text[1]}, to_apply=f", combiner(op, t)))
for t, u in [("f32", "s32"), ("s8", "f64"), ("c64", "f32"), ("u16", "bf16")]:
    pairs = f"f {{\n  a = {t}[] parameter(0)\n  b = {u}[] parameter(1)\n  c = {t}[] parameter(2)\n  d = {u}[] parameter(3)\n  x = {t}[] add(a, c)\n  y = {u}[] add(b, d)\n  ROOT r = ({t}[], {u}[]) tuple(x, y)\n}}\n"
    write("gpu_scatter_expander", f"pair_{t}_{u}", entry(f"a:{t}[8] b:{u}[8] i:s32[4,1] u:{t}[4] v:{u}[4]", f"""
g = ({t}[8], {u}[8]) scatter(a, b, i, u, v), update_window_dims={{}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=f""", pairs))

# --- convolution-pred-expander, convolution_4d_expander ---
for groups, (w, extra) in itertools.product((1, 2), [("size=3x3", ""), ("size=3x3 pad=1_1x1_1", ""), ("size=3x3 stride=2x2", ""), ("size=3x3 lhs_dilate=2x2", ""), ("size=3x3 rhs_dilate=2x2", ""), ("size=3x3 pad=1_1x1_1 stride=2x2", "")]):
    def out(n, words=w):
        for word in words.split():
            k, v = word.split("=")
            first = v.split("x")[0]
            if k == "lhs_dilate": n = (n - 1) * int(first) + 1
            if k == "pad": n += sum(int(x) for x in first.split("_"))
        size = 5 if "rhs_dilate" in words else 3
        return (n - size) // (2 if "stride" in words else 1) + 1
    o = out(9)
    feature = f", feature_group_count={groups}" if groups > 1 else ""
    write("convolution-pred-expander", f"g{groups}_{w}".replace(" ", "_").replace("=", ""), entry(f"x:pred[2,9,9,4] k:pred[3,3,{4 // groups},6]", f"""
c = pred[2,{o},{o},6] convolution(x, k), window={{{w}}}, dim_labels=b01f_01io->b01f{feature}"""))
for t, (x, k, o, w, labels) in itertools.product(("f32", "bf16", "f16"), [
        ("2,5,6,7,8,3", "2,3,3,2,3,4", "2,4,4,5,7,4", "size=2x3x3x2", "b0123f_0123io->b0123f"),
        ("2,5,1,7,8,3", "2,1,3,2,3,4", "2,4,1,5,7,4", "size=2x1x3x2", "b0123f_0123io->b0123f"),
        ("2,1,1,7,8,3", "1,1,3,2,3,4", "2,1,1,5,7,4", "size=1x1x3x2", "b0123f_0123io->b0123f"),
        ("2,3,5,1,7,8", "4,3,2,1,3,2", "2,4,4,1,5,7", "size=2x1x3x2", "bf0123_oi0123->bf0123"),
        ("2,5,1,7,3", "2,1,3,3,4", "2,4,1,5,4", "size=2x1x3", "b012f_012io->b012f"),
        ("2,5,1,7,8,3", "2,1,3,2,3,4", "2,4,3,5,7,4", "size=2x1x3x2 pad=0_0x1_1x0_0x0_0", "b0123f_0123io->b0123f"),
        ("2,5,1,7,1,3", "2,1,3,1,3,4", "2,4,1,5,1,4", "size=2x1x3x1", "b0123f_0123io->b0123f")]):
    write("convolution_4d_expander", f"{t}_{w}_{len(x)}_{x}_{labels[:3]}".replace(" ", "_").replace("=", "").replace(",", ""), entry(f"x:{t}[{x}] k:{t}[{k}]", f"""
c = {t}[{o}] convolution(x, k), window={{{w}}}, dim_labels={labels}"""))

# --- bitcast_dtypes_expander ---
for a, sa, b, sb in [("f32", "8", "u8", "8,4"), ("f32", "8", "s16", "8,2"), ("f64", "3", "f32", "3,2"), ("u64", "2,3", "u16", "2,3,4"), ("s32", "", "u8", "4"),
                     ("u8", "8,4", "f32", "8"), ("s16", "8,2", "f32", "8"), ("f32", "3,2", "f64", "3"), ("u16", "2,3,4", "u64", "2,3"), ("u8", "4", "s32", ""),
                     ("bf16", "5", "u8", "5,2"), ("u8", "5,2", "bf16", "5"), ("s8", "4,8", "s64", "4"), ("s64", "4", "s8", "4,8"), ("u32", "3", "f16", "3,2"), ("f32", "4", "s32", "4"),
                     ("u8", "6", "u4", "6,2"), ("u4", "6,2", "u8", "6")]:
    write("bitcast_dtypes_expander", f"{a}_{sa}_{b}".replace(",", "x"), entry(f"x:{a}[{sa}]", f"c = {b}[{sb}] bitcast-convert(x)"))

# --- broadcast_canonicalizer: its work comes from layouts that are normalised ---
# (compiled with layout-assignment,layout_normalization,broadcast_canonicalizer)
for t, (x, wide, d, order) in itertools.product(("f32", "s8"), [
        ("4,6", (4, 6, 5), (0, 1), (1, 0, 2)), ("4,6", (5, 4, 6), (1, 2), (0, 2, 1)), ("4,6", (4, 5, 6), (0, 2), (2, 1, 0)),
        ("2,3,4", (2, 3, 4, 5), (0, 1, 2), (3, 2, 1, 0)), ("2,3,4", (2, 3, 4, 5), (0, 1, 2), (1, 0, 3, 2)), ("2,3,4", (5, 2, 3, 4), (1, 2, 3), (0, 1, 3, 2)),
        ("1,6", (1, 6, 3), (0, 1), (1, 0, 2)), ("6", (4, 6), (1,), (1, 0))]):
    dims = lambda v: ",".join(map(str, v))
    for op in ("sine", "negate"):
        if t == "s8" and op == "sine":
            continue
        write("broadcast_canonicalizer", f"{t}_{op}_{dims(order)}_{dims(wide)}".replace(",", ""), entry(f"x:{t}[{x}] y:{t}[{dims(wide)}]", f"""
b = {t}[{dims(wide)}] broadcast(x), dimensions={{{dims(d)}}}
n = {t}[{dims(wide)}] {op}(b)
q = {t}[{dims([wide[k] for k in order])}] transpose(n), dimensions={{{dims(order)}}}"""))

# --- simplify-sorts: the importer drops what is plainly unused, so a call that ignores an argument hides it ---
# (compiled with simplification,simplify-sorts,call-inliner,dce,tuple-simplifier)
for n, stable, kept in itertools.product((2, 3, 4), ("", ", is_stable=true"), ("first", "last", "compared_second", "two", "all")):
    types = ("f32", "s32", "bf16", "s8")[:n]
    which = 1 if kept == "compared_second" else 0
    used = {"first": [0], "last": [n - 1], "compared_second": [0], "two": [0, n - 1], "all": list(range(n))}[kept]
    body = "lt {\n" + "".join(f"  a{i} = {t}[] parameter({2 * i})\n  b{i} = {t}[] parameter({2 * i + 1})\n" for i, t in enumerate(types)) + \
        f"  ROOT r = pred[] compare(a{which}, b{which}), direction=LT\n}}\n"
    out = "(" + ", ".join(f"{types[i]}[16]" for i in used) + ")"
    body += "some {\n" + "".join(f"  v{i} = {t}[16] parameter({i})\n" for i, t in enumerate(types)) + \
        f"  ROOT r = {out} tuple({', '.join(f'v{i}' for i in used)})\n}}\n"
    shape = "(" + ", ".join(f"{t}[16]" for t in types) + ")"
    parts = "\n".join(f"g{i} = {t}[16] get-tuple-element(s), index={i}" for i, t in enumerate(types))
    write("simplify-sorts", f"n{n}_{kept}{'_stable' if stable else ''}", entry(" ".join(f"p{i}:{t}[16]" for i, t in enumerate(types)), f"""
s = {shape} sort({', '.join(f'p{i}' for i in range(n))}), dimensions={{0}}{stable}, to_apply=lt
{parts}
c = {out} call({', '.join(f'g{i}' for i in range(n))}), to_apply=some""", body))

# --- dynamic-index-splitter: indices as one vector come from old texts alone ---

# --- variadic-op-splitter ---
for n, t, form in itertools.product((128, 129, 200, 256, 257, 300), ("f32", "s8"), ("same", "other", "rank2")):
    names = [f"x{i % 5}" if form != "other" else f"y{i % 3}" for i in range(n)]
    params = f"x0:{t}[2] x1:{t}[2] x2:{t}[2] x3:{t}[2] x4:{t}[2] y0:{t}[3] y1:{t}[1] y2:{t}[2]" if form != "rank2" else " ".join(f"x{i}:{t}[2,3]" for i in range(5))
    size = sum({"y0": 3, "y1": 1}.get(name, 2) for name in names)
    shape = f"{t}[{size}]" if form != "rank2" else f"{t}[{size},3]"
    write("variadic-op-splitter", f"n{n}_{t}_{form}", entry(params, f"c = {shape} concatenate({', '.join(names)}), dimensions={{0}}"))

# --- while-loop-(expensive-)invariant-code-motion ---
for which, state in itertools.product(
    ("add", "dot", "dot_chain", "exp", "broadcast_add", "transpose_dot", "reshape_mul", "slice_add", "two", "convert", "reduce", "conv", "constant", "iota", "pure_constant", "select", "gte_tuple", "compare"),
    ("f32[8,8]",)):
    body = {
        "add": "v = f32[8,8] add(b, b)",
        "dot": "v = f32[8,8] dot(b, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "dot_chain": "w = f32[8,8] dot(b, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  v = f32[8,8] dot(w, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "exp": "v = f32[8,8] exponential(b)",
        "broadcast_add": "h = f32[] constant(2)\n  hb = f32[8,8] broadcast(h), dimensions={}\n  v = f32[8,8] add(b, hb)",
        "transpose_dot": "w = f32[8,8] transpose(b), dimensions={1,0}\n  v = f32[8,8] dot(w, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "reshape_mul": "w = f32[64] reshape(b)\n  w2 = f32[64] multiply(w, w)\n  v = f32[8,8] reshape(w2)",
        "slice_add": "w = f32[4,8] slice(b), slice={[0:4],[0:8]}\n  w2 = f32[4,8] add(w, w)\n  z = f32[] constant(0)\n  v = f32[8,8] pad(w2, z), padding=0_4x0_0",
        "two": "w = f32[8,8] sine(b)\n  w2 = f32[8,8] cosine(b)\n  v = f32[8,8] multiply(w, w2)",
        "convert": "w = bf16[8,8] convert(b)\n  v = f32[8,8] convert(w)",
        "reduce": "z = f32[] constant(0)\n  w = f32[8] reduce(b, z), dimensions={1}, to_apply=f\n  v = f32[8,8] broadcast(w), dimensions={0}",
        "conv": "w = f32[1,8,8,1] reshape(b)\n  k = f32[1,1,1,1] constant({{{{3}}}})\n  w2 = f32[1,8,8,1] convolution(w, k), window={size=1x1}, dim_labels=b01f_01io->b01f\n  v = f32[8,8] reshape(w2)",
        "constant": "k = f32[8,8] broadcast(q), dimensions={}\n  v = f32[8,8] multiply(k, k)",
        "iota": "k = f32[8,8] iota(), iota_dimension=1\n  v = f32[8,8] multiply(k, b)",
        "pure_constant": "k = f32[] constant(5)\n  k2 = f32[] sine(k)\n  v = f32[8,8] broadcast(k2), dimensions={}",
        "select": "p = pred[8,8] compare(b, b), direction=GT\n  w = f32[8,8] negate(b)\n  v = f32[8,8] select(p, w, b)",
        "gte_tuple": "w = (f32[8,8], f32[8,8]) tuple(b, b)\n  w2 = f32[8,8] get-tuple-element(w), index=1\n  v = f32[8,8] tanh(w2)",
        "compare": "p = pred[8,8] compare(b, b), direction=LT\n  v = f32[8,8] convert(p)",
    }[which]
    use = "n = f32[8,8] add(a, v)"
    text = combiner("add", "f32") + f"""body {{
  s = (s32[], f32[8,8], f32[8,8], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[8,8] get-tuple-element(s), index=1
  b = f32[8,8] get-tuple-element(s), index=2
  q = f32[] get-tuple-element(s), index=3
  o = s32[] constant(1)
  i2 = s32[] add(i, o)
  {body}
  {use}
  ROOT t = (s32[], f32[8,8], f32[8,8], f32[]) tuple(i2, n, b, q)
}}
cond {{
  s = (s32[], f32[8,8], f32[8,8], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  m = s32[] constant(7)
  ROOT r = pred[] compare(i, m), direction=LT
}}
"""
    for target in ("while-loop-invariant-code-motion", "while-loop-expensive-invariant-code-motion"):
        write(target, which, entry("x:f32[8,8] y:f32[8,8] q:f32[]", """
i = s32[] constant(0)
s = (s32[], f32[8,8], f32[8,8], f32[]) tuple(i, x, y, q)
w = (s32[], f32[8,8], f32[8,8], f32[]) while(s), condition=cond, body=body
r = f32[8,8] get-tuple-element(w), index=1""", text))

# --- reduce-window-resizer ---
for t, op, (x, o, w) in itertools.product(("f32", "s32", "bf16"), ("add", "maximum"), [("16", "16", "size=16 pad=15_0"), ("16", "8", "size=2 stride=2"), ("16", "14", "size=3"), ("16", "12", "size=3 rhs_dilate=2"), ("16", "29", "size=3 lhs_dilate=2")]):
    write("reduce-window-resizer", f"{t}_{op}_{w}".replace(" ", "_").replace("=", ""), entry(f"x:{t}[{x}] z:{t}[]", f"r = {t}[{o}] reduce-window(x, z), window={{{w}}}, to_apply=f", combiner(op, t)))

# --- float-normalization-u4, -s4 (compiled with float_normalization,float-normalization-u4) ---
for t in ("u4", "s4"):
    which = f"float-normalization-{t}"
    for op in ("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and", "or", "xor", "power"):
        write(which, op, entry(f"x:{t}[4,3] y:{t}[4,3]", f"r = {t}[4,3] {op}(x, y)"))
    for op in ("LT", "EQ"):
        write(which, f"compare_{op}", entry(f"x:{t}[4] y:{t}[4]", f"r = pred[4] compare(x, y), direction={op}"))
    write(which, "select", entry(f"p:pred[4] x:{t}[4] y:{t}[4]", f"r = {t}[4] select(p, x, y)"))
    write(which, "clamp", entry(f"l:{t}[] x:{t}[4] h:{t}[]", f"r = {t}[4] clamp(l, x, h)"))
    write(which, "not", entry(f"x:{t}[4]", f"r = {t}[4] not(x)"))
    write(which, "reduce", entry(f"x:{t}[4,3] z:{t}[]", f"r = {t}[4] reduce(x, z), dimensions={{1}}, to_apply=f", combiner("add", t)))

# --- the same of small floats, -f4e2m1fn and the like; what stands behind layouts as well ---
for t in ("f4e2m1fn", "f8e8m0fnu", "f8e4m3fn", "f8e5m2", "f8e4m3", "f8e3m4", "f8e4m3b11fnuz"):
    which = f"float-normalization-{t}"
    for op in ("add", "multiply", "divide", "maximum", "minimum", "power") + (() if t == "f8e8m0fnu" else ("subtract", "remainder", "atan2")):
        write(which, op, entry(f"x:{t}[4,3] y:{t}[4,3]", f"r = {t}[4,3] {op}(x, y)"))
    for op in ("abs", "exponential", "sqrt", "tanh", "floor", "round-nearest-even", "cosine") + (() if t == "f8e8m0fnu" else ("negate", "sign")):
        write(which, op, entry(f"x:{t}[4,3]", f"r = {t}[4,3] {op}(x)"))
    for op in ("LT", "EQ"):
        write(which, f"compare_{op}", entry(f"x:{t}[4] y:{t}[4]", f"r = pred[4] compare(x, y), direction={op}"))
    write(which, "select", entry(f"p:pred[4] x:{t}[4] y:{t}[4]", f"r = {t}[4] select(p, x, y)"))
    write(which, "clamp", entry(f"l:{t}[] x:{t}[4] h:{t}[]", f"r = {t}[4] clamp(l, x, h)"))
    write(which, "reduce", entry(f"x:{t}[4,3] z:{t}[]", f"r = {t}[4] reduce(x, z), dimensions={{1}}, to_apply=f", combiner("maximum", t)))
    write(which, "reduce_window", entry(f"x:{t}[16] z:{t}[]", f"r = {t}[8] reduce-window(x, z), window={{size=2 stride=2}}, to_apply=f", combiner("maximum", t)))
    write(which, "transpose", entry(f"x:{t}[4,6]", f"t = {t}[6,4] transpose(x), dimensions={{1,0}}\ny = {t}[6,4] abs(t)\nr = {t}[24] reshape(y)"))
    write(which, "chain", entry(f"x:{t}[8] y:f32[8]", f"a = f32[8] convert(x)\nb = f32[8] add(a, y)\nc = {t}[8] convert(b)\nr = {t}[8] abs(c)"))
    write(which, "sort", entry(f"x:{t}[8]", f"r = {t}[8] sort(x), dimensions={{0}}, to_apply=f", f"f {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n  ROOT r = pred[] compare(a, b), direction=LT\n}}\n"))

# Of this one XLA's GPU does nothing as it is, not even what moves elements; of the others beside it all of that.
for t in ("f8e4m3b11fnuz", "f8e5m2fnuz", "f8e4m3fnuz"):
    for op, text in {
        "broadcast": f"r = {t}[4,3,2] broadcast(x), dimensions={{0,1}}", "reverse": f"r = {t}[4,3] reverse(x), dimensions={{0}}", "slice": f"r = {t}[2,3] slice(x), slice={{[0:4:2], [0:3]}}",
        "concatenate": f"r = {t}[8,3] concatenate(x, x), dimensions={{0}}", "pad": f"z = {t}[] constant(1)\nr = {t}[6,3] pad(x, z), padding=1_1x0_0", "iota": f"r = {t}[4,3] iota(), iota_dimension=0",
        "dynamic_slice": f"i = s32[] constant(1)\nr = {t}[2,3] dynamic-slice(x, i, i), dynamic_slice_sizes={{2,3}}", "update": f"i = s32[] parameter(1)\nu = {t}[2,2] slice(x), slice={{[0:2], [0:2]}}\nr = {t}[4,3] dynamic-update-slice(x, u, i, i)",
        "gather": f"i = s32[5,1] parameter(1)\nr = {t}[5,3] gather(x, i), offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,3}}",
        "scatter": f"i = s32[2,1] parameter(1)\nu = {t}[2,3] parameter(2)\nr = {t}[4,3] scatter(x, i, u), update_window_dims={{1}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=f",
        "dot": f"r = {t}[4,4] dot(x, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}", "dot_wide": "r = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}", "copy": f"r = {t}[4,3] copy(x)", "convert": "r = f32[4,3] convert(x)", "bitcast": "b = u8[4,3] bitcast-convert(x)\nr = u8[4,3] not(b)",
        "tuple": f"r = ({t}[4,3], {t}[4,3]) tuple(x, x)", "sort_two": f"i = s32[4,3] iota(), iota_dimension=0\nr = ({t}[4,3], s32[4,3]) sort(x, i), dimensions={{0}}, to_apply=less", "reduce_add": f"z = {t}[] constant(0)\nr = {t}[4] reduce(x, z), dimensions={{1}}, to_apply=f",
        "map": f"r = {t}[4,3] map(x, x), dimensions={{0,1}}, to_apply=f", "is_finite": "r = pred[4,3] is-finite(x)", "reduce_precision": f"r = {t}[4,3] reduce-precision(x), exponent_bits=3, mantissa_bits=2",
        "select_and_scatter": f"z = {t}[] constant(0)\ns = {t}[2,3] parameter(1)\nr = {t}[4,3] select-and-scatter(x, s, z), window={{size=2x1 stride=2x1}}, select=ge, scatter=f",
        "while": f"k = s32[] constant(0)\nt = (s32[], {t}[4,3]) tuple(k, x)\nw = (s32[], {t}[4,3]) while(t), condition=cond, body=body\nr = {t}[4,3] get-tuple-element(w), index=1",
    }.items():
        functions = combiner("add", t) + f"less {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n  c = s32[] parameter(2)\n  d = s32[] parameter(3)\n  ROOT r = pred[] compare(a, b), direction=LT\n}}\n"
        functions += f"ge {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n  ROOT r = pred[] compare(a, b), direction=GE\n}}\n"
        functions += f"cond {{\n  s = (s32[], {t}[4,3]) parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  n = s32[] constant(5)\n  ROOT l = pred[] compare(i, n), direction=LT\n}}\n"
        functions += f"body {{\n  s = (s32[], {t}[4,3]) parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  one = s32[] constant(1)\n  j = s32[] add(i, one)\n  x = {t}[4,3] get-tuple-element(s), index=1\n  y = {t}[4,3] add(x, x)\n  ROOT r = (s32[], {t}[4,3]) tuple(j, y)\n}}\n"
        used = {"f": "to_apply=f" in text or "scatter=f" in text, "less": "less" in text, "ge": "select=ge" in text, "cond": "while" in text, "body": "while" in text}
        kept = "".join(part + "}\n" for part in functions.split("}\n") if part and used[part.split(" ")[0]])
        write(f"float-normalization-{t}", f"moved_{op}", entry(f"x:{t}[4,3]", text, kept))

# --- the linear algebra expanders ---
for t, dims_ in itertools.product(("f32", "f64", "c64"), ("1,1", "3,3", "5,5", "2,4,4", "130,130")):
    for lower in ("true", "false"):
        write("cholesky_expander", f"{t}_{dims_}_{lower}".replace(",", "x"), entry(f"a:{t}[{dims_}]", f"c = {t}[{dims_}] cholesky(a), lower={lower}"))
for t, (shape, tau) in itertools.product(("f32", "f64", "c64"), [("4,4", "4"), ("6,4", "4"), ("4,6", "4"), ("2,3,5", "2,3"), ("1,3", "1"), ("140,130", "130")]):
    write("qr_expander", f"{t}_{shape}".replace(",", "x"), entry(f"a:{t}[{shape}]", f"c = ({t}[{shape}], {t}[{tau}]) custom-call(a), custom_call_target=\"Qr\""))
    if not shape.endswith("6") and not shape.endswith("5"):
        write("qr_expander", f"house_{t}_{shape}".replace(",", "x"), entry(f"a:{t}[{shape}] t:{t}[{tau}]", f"c = {t}[{shape}] custom-call(a, t), custom_call_target=\"ProductOfElementaryHouseholderReflectors\""))
for t, (shape, w), config in itertools.product(("f32", "f64", "c64"), [("4,4", "4"), ("7,7", "7"), ("2,3,3", "2,3"), ("1,1", "1"), ("8,8", "8")], ("1,1,100,1e-6", "0,0,50,1e-6")):
    real = "f32" if t == "c64" else t
    write("eigh_expander", f"{t}_{shape}_{config[0]}".replace(",", "x"), entry(f"a:{t}[{shape}]", f"c = ({t}[{shape}], {real}[{w}]) custom-call(a), custom_call_target=\"Eigh\", backend_config=\"{config}\""))

# --- topk-splitter, topk-specializer ---
greater = "greater {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  c = s32[] parameter(2)\n  d = s32[] parameter(3)\n  ROOT r = pred[] compare(a, b), direction=GT\n}\n"
for n, k in itertools.product((1024, 2097152, 1048576, 1048577, 3000000, 5000000), (1, 4, 16, 17)):
    for rank in (1, 2):
        one = "1," if rank == 2 else ""
        text = entry(f"x:f32[{one}{n}]", f"c = (f32[{one}{k}], s32[{one}{k}]) custom-call(x), custom_call_target=\"TopK\", called_computations={{greater}}", greater)
        write("topk-splitter", f"n{n}_k{k}_r{rank}", text)
        write("topk-specializer", f"n{n}_k{k}_r{rank}", text)

# --- reduce-decomposer (compiled with layout-assignment,reduce-decomposer): a layout of the result that is not its own ---
for t, (x, over, out, order) in itertools.product(("f32", "bf16", "s32"), [("4,5,6", "0", "5,6", "1,0"), ("4,5,6", "1", "4,6", "1,0"), ("4,5,6", "2", "4,5", "1,0"), ("2,3,4,5", "1", "2,4,5", "2,0,1"), ("2,3,4,5", "3", "2,3,4", "1,2,0")]):
    sizes = [out.split(",")[int(k)] for k in order.split(",")]
    write("reduce-decomposer", f"{t}_{x}_{over}".replace(",", ""), entry(f"x:{t}[{x}] z:{t}[]", f"""
r = {t}[{out}] reduce(x, z), dimensions={{{over}}}, to_apply=f
t = {t}[{','.join(sizes)}] transpose(r), dimensions={{{order}}}""", combiner("add", t)))

# --- dot_dimension_merger (compiled with layout-assignment,dot_dimension_merger) ---
for t, (l, r, out, n) in itertools.product(("f32", "bf16", "s8"), [("2,3,8,20", "2,3,20,9", "2,3,8,9", 2), ("2,3,4,8,20", "2,3,4,20,9", "2,3,4,8,9", 3), ("2,3,20", "2,3,20,9", "2,3,9", 2), ("1,3,8,20", "1,3,20,9", "1,3,8,9", 2)]):
    batch = ",".join(map(str, range(n)))
    o = "s32" if t == "s8" else t
    write("dot_dimension_merger", f"{t}_{l}".replace(",", "x"), entry(f"l:{t}[{l}] r:{t}[{r}]", f"d = {o}[{out}] dot(l, r), lhs_batch_dims={{{batch}}}, rhs_batch_dims={{{batch}}}, lhs_contracting_dims={{{len(l.split(',')) - 1}}}, rhs_contracting_dims={{{n}}}"))

# --- topk-rewriter: sorts whose front alone is wanted; near misses ---
for t, (dims_, along) in itertools.product(("f32", "bf16"), [("3,9", 1), ("64", 0), ("2,3,40", 2), ("16,3", 0), ("5,1,7", 0)]):
    sizes = [int(n) for n in dims_.split(",")]
    for name, order, k, values_alone in [("two", "GT", 2, False), ("values", "GT", 3, True), ("all", "GT", sizes[along], False), ("least", "LT", 2, False)]:
        out = ",".join(str(k if d == along else n) for d, n in enumerate(sizes))
        cut = ", ".join(f"[0:{k if d == along else n}]" for d, n in enumerate(sizes))
        less = f"f {{\n  x = {t}[] parameter(0)\n  y = {t}[] parameter(1)\n" + ("" if values_alone else "  i = s32[] parameter(2)\n  j = s32[] parameter(3)\n") + f"  ROOT r = pred[] compare(x, y), direction={order}, type=TOTALORDER\n}}\n"
        if values_alone:
            body = f"s = {t}[{dims_}] sort(p), dimensions={{{along}}}, is_stable=true, to_apply=f\nv = {t}[{out}] slice(s), slice={{{cut}}}"
        else:
            body = f"""i = s32[{dims_}] iota(), iota_dimension={along}
s = ({t}[{dims_}], s32[{dims_}]) sort(p, i), dimensions={{{along}}}, is_stable=true, to_apply=f
a = {t}[{dims_}] get-tuple-element(s), index=0
b = s32[{dims_}] get-tuple-element(s), index=1
v = {t}[{out}] slice(a), slice={{{cut}}}
w = s32[{out}] slice(b), slice={{{cut}}}
t = ({t}[{out}], s32[{out}]) tuple(v, w)"""
        write("topk-rewriter", f"{t}_{dims_}_{name}".replace(",", "x"), entry(f"p:{t}[{dims_}]", body, less))

# --- topk-splitter: more lengths, and what is too short or too many ---
for n, k, t in itertools.product((1500000, 4194304, 2097153), (1, 8, 16), ("f32",)):
    text = entry(f"x:{t}[{n}]", f'c = ({t}[{k}], s32[{k}]) custom-call(x), custom_call_target="TopK", called_computations={{greater}}', greater)
    write("topk-splitter", f"more_{n}_{k}", text)

# --- rng-expander ---
for t, shape in itertools.product(("f32", "f64", "bf16", "f16", "s32", "u32", "s64", "u64"), ("4", "3,5", "")):
    write("rng-expander", f"uniform_{t}_{shape}".replace(",", "x"), entry(f"a:{t}[] b:{t}[]", f"r = {t}[{shape}] rng(a, b), distribution=rng_uniform"))
    if t in ("f32", "f64", "bf16", "f16"):
        write("rng-expander", f"normal_{t}_{shape}".replace(",", "x"), entry(f"a:{t}[] b:{t}[]", f"r = {t}[{shape}] rng(a, b), distribution=rng_normal"))

# --- triangular_solve_expander (in XLA's pipeline for the CPU alone: --backend cpu) ---
for t, (a, b, left) in itertools.product(("f32", "c64"), [("1,1", "1,3", True), ("3,3", "3,2", True), ("4,4", "2,4", False), ("2,3,3", "2,3,5", True), ("2,5,5", "2,1,5", False), ("130,130", "130,4", True), ("260,260", "3,260", False), ("2,140,140", "2,140,2", True), ("0,0", "0,3", True)]):
    for lower, transpose, unit in itertools.product(("true", "false"), ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"), ("true", "false")):
        if t == "c64" and transpose == "TRANSPOSE" and unit == "true":
            continue
        attrs = ("left_side=true, " if left else "") + f"lower={lower}, " + ("unit_diagonal=true, " if unit == "true" else "") + f"transpose_a={transpose}"
        write("triangular_solve_expander", f"{t}_{a}_{b}_{lower}_{transpose}_{unit}".replace(",", "x"), entry(f"a:{t}[{a}] b:{t}[{b}]", f"r = {t}[{b}] triangular-solve(a, b), {attrs}"))
