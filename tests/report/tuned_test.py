#!/usr/bin/env python3
"""What XLA's autotuner chose: read, shown, compared, taken by our passes.  tuned_test.py HLO_REPLAY SOURCE_FOLDER

testdata/tuned is an H200's own: the last module of f8_matmul (jax 0.11.2) in front of the autotuner, behind it and behind
convert_triton_gemm_config, and what --xla_gpu_dump_autotune_results_to wrote. Keys are XLA's."""
import json
import pathlib
import re
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from command_line import data, expect, finish, run

TUNED = data / "tuned"


def answer(*args, code=0):
    got, out, err = run(*args, "--json")
    expect(f"{args[0]} {args[1]}: exit code", got == code, f"{got}: {err}{out[-300:]}")
    return json.loads(out) if out.startswith("{") else {}


def kernels_of(report):
    return {k["instruction"]: k for m in report.get("modules", []) for k in m["kernels"]}


# --- protobuf's wire format, to write binary files with ---
def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def number(field, value):
    return varint(field << 3) + varint(value)


def inside(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def case_listing():
    report = answer("tuned", TUNED / "dump")
    kernels = kernels_of(report)
    told = {n: (k["chosen"]["backend_in_words"], k["chosen"]["tiles"], k["chosen"]["algorithm"]) for n, k in kernels.items()}
    expect("listing", told == {
        "gemm_fusion_dot_general.2": ("Triton", "128x256x128", ""),
        "gemm_fusion_dot_general.3": ("cuBLASLt", "", "algorithm 0 of its list"),
        "input_reduce_fusion": ("Triton, block level", "1x16", ""),
        "input_reduce_fusion.1": ("Triton, block level", "scalar", ""),
        "input_reduce_fusion.2": ("Triton, block level", "scalar", ""),
        "input_reduce_fusion.3": ("native emitter", "", ""),
        "loop_multiply_fusion": ("native emitter", "", ""),
        "input_convert_reduce_fusion": ("native emitter", "", ""),
        "input_convert_reduce_fusion.1": ("native emitter", "", "")}, told)
    # Each is known to the file by XLA's own key, and the module has what the file says.
    expect("listing: keys", all(k["result"] and k["result"]["agrees"] for k in kernels.values()), kernels)
    expect("listing: all used", report["unused"] == [] and report["results"][0]["choices"] == 7, report["unused"])
    key = kernels["gemm_fusion_dot_general.2"]["key"]
    lines = (TUNED / "f8_matmul.pbtxt").read_text().split("\n")
    line = kernels["gemm_fusion_dot_general.2"]["result"]["line"]
    expect("listing: line", key == "882f1e37cac1660d1371aef86933eb08" and key in "".join(lines[line - 1:line + 6]), (key, line))
    expect("listing: became", kernels["gemm_fusion_dot_general.3"]["became"] == "custom-call.1", kernels["gemm_fusion_dot_general.3"])
    expect("listing: not decided before", kernels["gemm_fusion_dot_general.2"]["before"]["backend"] == "UNSPECIFIED_BACKEND")
    code, out, _ = run("tuned", TUNED / "dump")
    expect("listing: text", code == 0 and "now custom-call.1" in out and "128x256x128, 3 stages, 8 warps, TMA" in out, out)
    # The last stage alone tells what it has; nothing in front of it is known.
    stage = TUNED / "dump" / "module_2652.jit_f.0061.config-assigner.after_convert_triton_gemm_config.before_pipeline-end.txt"
    alone = kernels_of(answer("tuned", stage))
    expect("a stage alone", alone["gemm_fusion_dot_general.2"]["chosen"]["tiles"] == "128x256x128" and not alone["gemm_fusion_dot_general.2"]["key"],
           alone.get("gemm_fusion_dot_general.2"))
    expect("a stage alone: call", alone["custom-call.1"]["chosen"]["backend"] == "CUBLASLT", alone.get("custom-call.1"))
    answer("tuned", data / "modules" / "softmax.hlo", code=1)


def case_results(tmp):
    file = answer("tuned", TUNED / "f8_matmul.pbtxt")["results"][0]
    expect("results", file["form"] == "AutotuneCache" and len(file["entries"]) == 7 and file["not_understood"] == {}, file["form"])
    text = (TUNED / "f8_matmul.pbtxt").read_text()
    # Another compilation's file: a kernel that differs, and one that is nobody's.
    other = tmp / "other.pbtxt"
    other.write_text(text.replace("num_warps: 8", "num_warps: 4").replace("494d86fecfd92066e4c788980821f5c0", "494d86fecfd92066e4c788980821f5c1"))
    report = answer("tuned", TUNED / "dump", f"--results={other}")
    kernels = kernels_of(report)
    expect("results: disagree", [n for n, k in kernels.items() if k["result"] and not k["result"]["agrees"]] == ["gemm_fusion_dot_general.2"], kernels)
    expect("results: unused", [u["key"] for u in report["unused"]] == ["494d86fecfd92066e4c788980821f5c1"] and report["unused"][0]["line"] > 0, report["unused"])
    expect("results: without an entry", kernels["input_reduce_fusion"]["result"] is None, kernels["input_reduce_fusion"])
    # What is not understood is named and counted.
    strange = tmp / "strange.pbtxt"
    strange.write_text(text.replace("block_m: 128", "block_m: 128 colour: 3").replace("NATIVE_EMITTER", "SILK", 1))
    file = answer("tuned", strange)["results"][0]
    expect("results: not understood", file["not_understood"] == {"colour": 1, "backend SILK": 1} and file["choices"] == 7, file["not_understood"])
    expect("results: unknown back end", [e["chosen"]["backend_in_words"] for e in file["entries"]].count("unknown") == 1)
    # XLA's older form, which says how long it took.
    older = tmp / "older.pbtxt"
    older.write_text('version: 3\nresults {\n  device: "CUDA: 9.0"\n  hlo: "f32[8] custom-call(f32[8] tmp_0), custom_call_target=\\"__cublas$gemm\\""\n'
                     '  result {\n    run_time {\n      nanos: 5000\n    }\n    gemm {\n      algorithm: 99\n    }\n  }\n}\n'
                     'results {\n  device: "CUDA: 9.0"\n  hlo: "{ }"\n  result {\n    scratch_bytes: 4\n    triton {\n      block_m: 32\n      block_n: 64\n'
                     '      block_k: 16\n      split_k: 4\n      num_stages: 1\n      num_warps: 2\n    }\n  }\n}\n')
    entries = answer("tuned", older)["results"][0]["entries"]
    expect("results: older", [(e["chosen"]["backend"], e["chosen"]["algorithm"], e["chosen"]["tiles"], e["chosen"]["split_k"], e["run_time_s"], e["line"]) for e in entries] ==
           [("CUBLAS", "algorithm 99", "", None, 5e-06, 2), ("TRITON", "", "32x64x16", 4, None, 14)], entries)
    # Binary: the same first choice as its text.
    key = inside(1, inside(1, inside(1, "device") + inside(3, "882f1e37cac1660d1371aef86933eb08")))
    triton = number(1, 128) + number(2, 256) + number(3, 128) + number(5, 3) + number(6, 8) + number(7, 1) + number(8, 1) + number(11, 1)
    config = number(1, 2) + inside(2, inside(2, triton))
    binary = tmp / "binary.autotune_results.pb"
    binary.write_bytes(inside(1, "device") + inside(3, key + inside(2, inside(1, config + number(17, 5)))))
    file = answer("tuned", binary)["results"][0]
    expect("results: binary", file["form"] == "AutotuneCache" and file["entries"][0]["chosen"]["in_words"] == "128x256x128, 3 stages, 8 warps, TMA", file)
    expect("results: binary, not understood", file["not_understood"] == {"Config.17": 1}, file["not_understood"])
    binary.write_bytes(number(1, 3) + inside(4, inside(2, "x") + inside(3, inside(6, number(1, 7)))))
    file = answer("tuned", binary)["results"][0]
    expect("results: binary, older", file["form"] == "AutotuneResults" and file["version"] == 3 and file["entries"][0]["chosen"]["algorithm"] == "algorithm 7 of its list", file)


def refused(name, path, words):
    code, out, err = run("tuned", path)
    expect(f"{name}: refused", code == 2 and all(w in err for w in words), f"{code} {out} {err[:400]}")


def case_bad(tmp):
    text = (TUNED / "f8_matmul.pbtxt").read_text()
    cut = tmp / "cut.autotune_results.pbtxt"
    lines = text.split("\n")[:30]
    cut.write_text("\n".join(lines))
    refused("cut", cut, [f"{cut}:30:", "error:", "cut short"])
    cut.write_text("entries {\n  key {\n    target 5\n")
    refused("wrong", cut, [f"{cut}:3:"])
    cut.write_text("a " + "x { " * 100_000)
    refused("deep", cut, ["nested"])
    garbage = tmp / "garbage.autotune_results.pb"
    garbage.write_bytes(bytes(range(256)) * 50)
    refused("garbage", garbage, [str(garbage), "damaged"])
    garbage.write_bytes(inside(3, b"\xff" * 40))
    refused("garbage inside", garbage, [str(garbage)])
    later = tmp / "later.autotune_results.pbtxt"
    later.write_text('version: 7\nresults { hlo: "x" }\n')
    refused("later", later, ["version 7"])
    later.write_text("version: 3\n")
    expect("nothing in it", run("tuned", later)[0] == 1)
    code, _, err = run("tuned", TUNED / "dump", f"--results={tmp / 'none.pbtxt'}")
    expect("no file", code == 2 and "none.pbtxt" in err, err)
    # One bad file in a folder is told, and the rest is shown.
    folder = tmp / "bad" / "dump"
    shutil.copytree(TUNED / "dump", folder)
    (folder / "module_2652.jit_f.autotune_results.pbtxt").write_text("entries {")
    code, out, err = run("tuned", folder)
    expect("bad file in a folder", code == 2 and "128x256x128" in out and "autotune_results.pbtxt:1:" in err, out + err)


def edited(tmp, name, *edits):
    folder = tmp / name / "dump"
    shutil.copytree(TUNED / "dump", folder)
    for file in folder.glob("*after_*config*"):
        text = file.read_text()
        for old, new in edits:
            text = text.replace(old, new)
        file.write_text(text)
    return folder


def case_compare(tmp):
    same = edited(tmp, "same")
    report = answer("tuned", TUNED / "dump", same)
    expect("same", report["same"] is True and report["comparisons"][0]["changes"] == [], report["comparisons"])
    expect("same: does not explain", "not explained" in run("tuned", TUNED / "dump", same, "--difference=1e-3")[1])
    # The f8 product's tiles, the s8 product's algorithm.
    folder = edited(tmp, "edited", ('"block_k":"128"', '"block_k":"64"'), ('"selected_algorithm":"0"', '"selected_algorithm":"3"'))
    report = answer("tuned", TUNED / "dump", folder, code=1)
    changes = {c["first_kernels"][0]: c for c in report["comparisons"][0]["changes"]}
    expect("changed", {n: c["what"] for n, c in changes.items()} == {"gemm_fusion_dot_general.2": ["tiles"], "gemm_fusion_dot_general.3": ["algorithm"]}, changes)
    tiles, algorithm = changes["gemm_fusion_dot_general.2"], changes["gemm_fusion_dot_general.3"]
    # 4096 products in f32, written as bf16: 64 * 2^-24 + 2^-8.
    expect("changed: numbers", tiles["terms"] == 4096 and abs(tiles["usual"] - (64 * 2**-24 + 2**-8)) < 1e-9, tiles)
    expect("changed: whole numbers", algorithm["most"] == 0 and "no difference" in algorithm["numbers"], algorithm)
    code, out, _ = run("tuned", TUNED / "dump", folder, "--difference=1e-3")
    expect("explained", code == 1 and "is of the size" in out, out)
    code, out, _ = run("tuned", TUNED / "dump", folder, "--difference=0.3")
    expect("not explained", code == 1 and "not explained by what was chosen" in out and "at most" in out, out)
    code, out, _ = run("diff", TUNED / "dump", folder)
    expect("diff points there", code == 1 and "hlo-replay tuned" in out, out[-300:])
    # Split-K, and a back end; what is not recorded is not judged.
    folder = edited(tmp, "split", ('"split_k":"0"', '"split_k":"8"'))
    report = answer("tuned", TUNED / "dump", folder, code=1)
    expect("split-K", report["comparisons"][0]["changes"][0]["what"] == ["split-K"], report["comparisons"])
    folder = edited(tmp, "unknown", ('"kind":"__triton_gemm"', '"kind":"__silk"'), ('"kind":"__triton"', '"kind":"__silk"'))
    code, out, _ = run("tuned", TUNED / "dump", folder, "--difference=1e-3")
    expect("unknown", code == 1 and "unknown: of 1 kernel it" in out and "only moved: no difference" in out, out)
    expect("--difference alone", run("tuned", TUNED / "dump", "--difference=1")[0] == 2)
    expect("results alone", run("tuned", TUNED / "f8_matmul.pbtxt", TUNED / "dump")[0] == 2)


CONV = """HloModule conv

ENTRY e {
  x = f16[1,112,112,32]{3,2,1,0} parameter(0)
  w = f16[32,3,3,1]{3,2,1,0} parameter(1)
  conv = (f16[1,112,112,32]{3,2,1,0}, u8[0]{0}) custom-call(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_o01i->b01f, feature_group_count=32, custom_call_target="__cudnn$convForward", backend_config=CONFIG
  ROOT r = f16[1,112,112,32]{3,2,1,0} get-tuple-element(conv), index=0
}
"""
# As of 2026 and, in another order and without what came since, as of the year before.
CONFIG = '{"cudnn_conv_backend_config":{"activation_mode":"kNone","conv_result_scale":1,"leakyrelu_alpha":0,"side_input_scale":0},"device_type":"DEVICE_TYPE_INVALID","force_earliest_schedule":false,"operation_queue_id":"0","reification_cost":[]}'
OLDER = '{"operation_queue_id":"0","force_earliest_schedule":false,"reification_cost":[],"cudnn_conv_backend_config":{"conv_result_scale":1,"activation_mode":"kNone","side_input_scale":0,"leakyrelu_alpha":0}}'
# mobile_infer's own entry for cudnn-conv.28.
PLAN = """entries {
  key {
    target {
      hlo_fingerprint: "KEY"
    }
  }
  value {
    optimal_config {
      backend: CUDNN
      backend_config {
        algorithm {
          algo_id: 57
          tuning_knobs {
            key: 2
            value: 4
          }
          tuning_knobs {
            key: 17
            value: 396
          }
          workspace_size {
            value: 782
          }
        }
      }
    }
  }
}
"""


def case_passes(tmp):
    stage = TUNED / "dump" / "module_2652.jit_f.0059.config-assigner.after_pipeline-start.before_conv-fp8-fallback.txt"
    _, plain, _ = run("opt", "--passes=autotuner", stage)
    expect("passes: defaults", "triton_gemm_config" in plain and '"num_warps":"8"' not in plain, plain[-300:])
    for name, results in (("file", TUNED / "f8_matmul.pbtxt"), ("dump", TUNED / "dump")):
        code, text, err = run("opt", "--passes=autotuner", f"--autotune-results={results}", stage)
        expect(f"passes: {name}", code == 0, err)
        line = next((x for x in text.split("\n") if x.lstrip().startswith("%gemm_fusion_dot_general.2 =")), "")
        expect(f"passes: {name}: tiles", '"block_m":"128"' in line and '"block_n":"256"' in line and '"num_warps":"8"' in line and '"is_tma_allowed":true' in line, line)
        line = next((x for x in text.split("\n") if x.lstrip().startswith("%input_reduce_fusion =")), "")
        expect(f"passes: {name}: block level", "kind=kCustom" in line and '"sizes":["1","16"]' in line, line)
        expect(f"passes: {name}: cuBLASLt", re.search(r"s8\[33554432\].* custom-call\(.*__cublas\$lt\$matmul.*\"selected_algorithm\":\"0\"", text) is not None)
        file = tmp / f"{name}.hlo"
        file.write_text(text)
        expect(f"passes: {name}: verifies", run("verify", file)[0] == 0)
        chosen = {n: k["chosen"]["in_words"] for n, k in kernels_of(answer("tuned", file)).items()}
        expect(f"passes: {name}: read back", chosen.get("gemm_fusion_dot_general.2") == "128x256x128, 3 stages, 8 warps, TMA", chosen)
    code, out, err = run("opt", "--passes=autotuner", f"--xla_gpu_load_autotune_results_from={TUNED / 'f8_matmul.pbtxt'}", "--json", stage)
    notes = [n for p in json.loads(out)["passes"] for n in p["notes"]] if out.startswith("{") else []
    expect("passes: notes", any(n["rule"] == "as the autotuner chose" and "Triton: 128x256x128" in n["text"] for n in notes), err + str(notes)[:300])
    plan = tmp / "plan.pbtxt"
    module = tmp / "conv.hlo"
    for name, config in (("today's", CONFIG), ("the year before's", OLDER)):
        module.write_text(CONV.replace("CONFIG", config))
        plan.write_text(PLAN.replace("KEY", CONV_KEY))
        code, text, err = run("opt", "--passes=autotuner", f"--autotune-results={plan}", module)
        expect(f"passes: plan, {name}", code == 0 and "u8[782]" in text and '"algo_id":"57"' in text and '"17":"396"' in text, err + text)
    plan.write_text(PLAN.replace("KEY", "0" * 32))
    code, text, err = run("opt", "--passes=autotuner", f"--autotune-results={plan}", module)
    expect("passes: another's plan", code == 0 and "algo_id" not in text and "u8[0]" in text, err + text)
    code, _, err = run("opt", "--passes=autotuner", f"--autotune-results={tmp / 'nothing'}", module)
    expect("passes: no results", code == 2, err)


CONV_KEY = "12fd4c827908ec1b8816e021be5acd06"  # mobile_infer.pbtxt has it


def case_fingerprint(tmp):
    """Zeros of either sign and ones are told as such, also complex ones, as XLA prints them (asked of 0.10.2)."""
    module = tmp / "constants.hlo"
    module.write_text("HloModule m\nENTRY e {\n  a = c64[] constant((0, 0))\n  b = c64[] constant((1, 0))\n  c = c64[2] constant({(0, 0), (0, 0)})\n"
                      "  d = c128[] constant((0, -0))\n  f = f32[] constant(-0)\n  g = c64[] constant((1, 1))\n"
                      "  ROOT t = (c64[], c64[], c64[2], c128[], f32[], c64[]) tuple(a, b, c, d, f, g)\n}\n")
    _, text, _ = run("print", "--style=fingerprint", module)
    expect("fingerprint", re.findall(r"constant\((.*?)\)", text) == ["0", "1", "0", "0", "0", "{...}"], text)


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    case_listing()
    case_results(folder)
    case_bad(folder)
    case_compare(folder)
    case_passes(folder)
    case_fingerprint(folder)
finish("tuned_test")
