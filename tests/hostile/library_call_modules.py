"""Calls of libraries with operands, results and configurations that fit, and many that do not; drawn from a seed."""
import json
import random

GEMM = {"gemm_backend_config": {"alpha_real": 1, "alpha_imag": 0, "beta": 0, "epilogue": "DEFAULT", "dot_dimension_numbers": {
    "lhs_contracting_dimensions": ["1"], "rhs_contracting_dimensions": ["0"], "lhs_batch_dimensions": [],
    "rhs_batch_dimensions": []}}}
ATTENTION = {"cudnn_fmha_backend_config": {
    "fmha_scale": 0.5, "mask_type": "CAUSAL", "intermediate_tensor_shape": {"dimensions": ["2", "3", "5", "6"]},
    "bmm1_dot_dimension_numbers": {"lhs_contracting_dimensions": ["3"], "rhs_contracting_dimensions": ["3"],
                                   "lhs_batch_dimensions": ["0", "1"], "rhs_batch_dimensions": ["0", "1"]},
    "bmm2_dot_dimension_numbers": {"lhs_contracting_dimensions": ["3"], "rhs_contracting_dimensions": ["2"],
                                   "lhs_batch_dimensions": ["0", "1"], "rhs_batch_dimensions": ["0", "1"]}}}
CONV = {"cudnn_conv_backend_config": {"activation_mode": "kRelu", "conv_result_scale": 2, "side_input_scale": 0.5}}
WINDOW = ", window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"
X, W, Y = "f32[2,5,6,4]", "f32[3,3,4,7]", "f32[2,5,6,7]"


def with_gemm(**changes):
    config = json.loads(json.dumps(GEMM))
    config["gemm_backend_config"].update(changes)
    return config


def norm(kind):
    return {"cudnn_norm_backend_config": {"kind": kind, "epsilon": 0.1}}


Q, K = "f32[2,3,5,4]", "f32[2,3,6,4]"
# target: calls that are right, as (operands, results, configuration, other attributes)
RIGHT = {
    "TopK": [(["f32[4,8]"], ["f32[4,3]", "s32[4,3]"], None, ""), (["s32[8]"], ["s32[8]", "s32[8]"], None, "")],
    "__gpu$TopK": [(["f32[8,64]"], ["f32[8,4]", "s32[8,4]"], None, "")],
    "__cusolver$cholesky": [(["f32[3,3]"], ["f32[3,3]", "f32[9]", "s32[]"], {"lower": True}, "")],
    "cusolver$cholesky": [(["f64[2,3,3]"], ["f64[2,3,3]"], {"lower": False}, "")],
    "Qr": [(["f32[5,4]"], ["f32[5,4]", "f32[4]"], None, ""), (["c64[2,3]"], ["c64[2,3]", "c64[2]"], None, "")],
    "ProductOfElementaryHouseholderReflectors": [(["f32[5,4]", "f32[3]"], ["f32[5,4]"], None, "")],
    "Eigh": [(["f32[4,4]"], ["f32[4,4]", "f32[4]"], "1,1,15,1e-6", ""), (["c64[3,3]"], ["c64[3,3]", "f32[3]"], "0,1,15,1e-6", "")],
    "GetRngSeed": [([], ["u64[]"], None, "")],
    "__onednn$layernorm": [(["f32[4,8]", "f32[8]", "f32[8]"], ["f32[4,8]"], {"onednn_layer_norm_config": {
        "rescale": "SCALE_AND_SHIFT", "epsilon_typecast": 925353388}}, "")],
    "__cublas$gemm": [(["f32[4,8]", "f32[8,5]"], ["f32[4,5]", "s8[256]"], GEMM, ""),
                      (["f32[4,8]", "f32[8,5]", "f32[4,5]"], ["f32[4,5]"], with_gemm(beta=1), "")],
    "__cublas$lt$matmul": [(["bf16[4,8]", "bf16[8,5]", "bf16[5]"], ["bf16[4,5]", "s8[0]"], with_gemm(epilogue="BIAS_RELU"), ""),
                           (["f32[4,8]", "f32[8,5]"], ["f32[4,5]", "f32[4,5]"], with_gemm(epilogue="GELU_AUX"), "")],
    "__cublas$lt$matmul$f8": [(["f8e4m3fn[4,8]", "f8e4m3fn[8,5]", "f32[]", "f32[]"], ["f32[4,5]", "s8[8]"], GEMM, "")],
    "__cudnn$norm": [(["f32[4,8]", "f32[8]", "f32[8]"], ["f32[4,8]", "u8[0]"], norm("LAYER_FWD_INFER"), ""),
                     (["f32[4,8]", "f32[8]", "f32[8]"], ["f32[4,8]", "f32[4]", "f32[4]", "u8[0]"], norm("LAYER_FWD_TRAIN"), ""),
                     (["f32[4,8]", "f32[8]", "f32[4,8]", "f32[4]", "f32[4]"], ["f32[4,8]", "f32[8]", "f32[8]", "u8[0]"],
                      norm("LAYER_BWD"), "")],
    "__cudnn$fmhaSoftmax": [([Q, K, K], [Q, "f32[2,3,5]", "u8[0]"], ATTENTION, "")],
    "__cudnn$fmhaScaleBiasSoftmax": [([Q, K, K, "f32[1,3,5,6]"], [Q, "u8[0]"], ATTENTION, "")],
    "__cudnn$convForward": [([X, W], [Y, "u8[0]"], None, WINDOW)],
    "__cudnn$convBackwardInput": [([Y, W], [X, "u8[0]"], None, WINDOW)],
    "__cudnn$convBackwardFilter": [([X, Y], [W, "u8[0]"], None, WINDOW)],
    "__cudnn$convBiasActivationForward": [([X, W, "f32[7]", Y], [Y, "u8[0]"], CONV, WINDOW)],
    "AllocateBuffer": [([], ["f32[4,4]"], None, "")],
    "Sharding": [(["f32[4]"], ["f32[4]"], None, "")],
}
SHAPES = ["f32[]", "f32[0]", "s8[1]", "s8[17]", "s32[17]", "f32[4]", "f32[8]", "f32[4,4]", "f32[5,4]", "f32[4,0]", "f64[4096]",
          "c64[4,4]", "pred[4]", "u8[0]", "bf16[4,8]", "f32[2,3,5]", "f32[2,3,5,4]", "f16[2,5,6,7]", "s4[8]", "f8e5m2[4,8]"]
OPERANDS = SHAPES + ["(f32[4])"]
OTHER_WINDOWS = ["", ", dim_labels=b01f_01io->b01f", ", window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f",
                 ", window={size=2x2 stride=2x2}, dim_labels=bf01_oi01->bf01", WINDOW + ", feature_group_count=3",
                 WINDOW + ", batch_group_count=2"]


def other_config(random_, config):
    """The same text with numbers and words changed."""
    if not isinstance(config, dict):
        return random_.choice(["", "1", "1,1,-5,nan", "{}", "[1]", '{"gemm_backend_config":7}', '{"a":' + "[" * 40 + "]" * 40 + "}"])
    text = json.dumps(config)
    return random_.choice([
        "{}", text.replace('"1"', '"7"'), text.replace('["0"]', '["-1"]'), text.replace('["1"]', '["1", "1"]'),
        text.replace("BIAS_RELU", "SILU"), text.replace('"0"', '"9223372036854775807"'), text.replace('"beta": 0', '"beta": 2'),
        text.replace("[", "{").replace("]", "}"), text.replace('"3"', '"2"'), text.replace("FWD_INFER", "BWD"),
        text.replace('"6"', '"4611686018427387905"'), text.replace("kRelu", "kSwish"), text[: len(text) // 2]])


def operand(name, shape):
    """Lines that make a value of that shape without parameters."""
    if shape.startswith("("):
        inner, line = shape[1:-1], f"{name} = {shape} tuple({name}e)"
        return operand(name + "e", inner) + [line]
    kind, dims = shape[:-1].split("[")
    one = {"pred": "true", "c64": "(1, 2)", "c128": "(1, 2)"}.get(kind, "1")
    if not dims:
        return [f"{name} = {shape} constant({one})"]
    if kind == "pred":
        return [f"{name}c = {kind}[] constant({one})", f"{name} = {shape} broadcast({name}c), dimensions={{}}"]
    return [f"{name} = {shape} iota(), iota_dimension={dims.count(',')}"]


def module(target, operands, results, config, rest):
    lines = [line for k, o in enumerate(operands) for line in operand(f"p{k}", o)]
    result = results[0] if len(results) == 1 and results[0] != "one tuple" else "(" + ", ".join(results) + ")"
    if config is not None:
        rest += ", backend_config=" + json.dumps(json.dumps(config) if isinstance(config, dict) else config)
    names = ", ".join(f"p{k}" for k in range(len(operands)))
    lines.append(f'ROOT r = {result} custom-call({names}), custom_call_target="{target}"{rest}')
    return "HloModule m\nENTRY e {\n  " + "\n  ".join(lines) + "\n}\n"


def modules(seed, count=36):
    """Pairs of (is it right?, text), `count` a target."""
    draw = random.Random(seed)
    for target, right in RIGHT.items():
        for n in range(count):
            operands, results, config, rest = draw.choice(right) if n >= len(right) else right[n]
            operands, results = list(operands), list(results)
            for _ in range(0 if n < len(right) else draw.choice([1, 1, 1, 2, 3])):
                what = draw.randrange(7)
                if what == 0 and operands:
                    operands[draw.randrange(len(operands))] = draw.choice(OPERANDS)
                elif what in (1, 2):
                    results[draw.randrange(len(results))] = draw.choice(SHAPES)
                elif what == 3:
                    results = [draw.choice(SHAPES) for _ in range(draw.choice([1, 2, 3, 5]))]
                elif what == 4:
                    operands = [draw.choice(OPERANDS) for _ in range(draw.choice([0, 1, 2, 3, 5]))]
                elif what == 5:
                    config = other_config(draw, config)
                elif "__cudnn$conv" in target:
                    rest = draw.choice(OTHER_WINDOWS)
                else:
                    results.pop() if len(results) > 1 else results.append(draw.choice(SHAPES))
            yield n < len(right), module(target, operands, results, config, rest)
