#!/usr/bin/env python3
"""The decisions of the lesson "predict the compiler": viewer/lessons/decisions.json, from XLA's dumps.

lesson_decisions.py DUMPS [--check]: DUMPS holds NAME.tar.zst of dumps with priority_fusion_dump.txt. Each decision
comes with the instructions that it is about as a module, cut from the module that the dump has; what feeds them become
parameters. A decision is taken where it is the first that XLA came to about names that no fusion had touched, and where
it stayed so. --check compares with the file that is there."""
import collections
import json
import pathlib
import re
import subprocess
import sys

OUT = pathlib.Path(__file__).resolve().parents[3] / "viewer/lessons/decisions.json"
# Dump, producer, model as the reader is told, what is to be learned. What XLA decided, and its numbers, come from the dump.
PICKS = [
    ("rocm__imagenette__train__allgpu__train_step_m0747", "mul.660.0", "a ResNet's training step (imagenette)",
     "Elementwise into elementwise, one user: a launch less and nothing computed twice."),
    ("rocm__llama3_8b__train__allgpu__train_step_m0099", "convert_element_type.70.0", "Llama 3 8B, training step",
     "An elementwise producer into a reduction: the large f32 array is never written."),
    ("rocm__detr__infer__1gpu__predict_step_m0468", "pad.5", "DETR, inference",
     "The user is a call of cuDNN: a library reads arrays from memory, nothing joins it."),
    ("rocm__deepseek2_16b__infer__1gpu__generate_jit_m0117", "reduce.32.0", "DeepSeek 2 16B, generation",
     "The other way round a reduction stops it: an element of its result is known only when a whole row is summed."),
    ("rocm__llama3_8b__train__allgpu__train_step_m0099", "broadcast.295.0", "Llama 3 8B, training step",
     "A broadcast only says where to read: done in both users it costs nothing, stored it would be 805 MB."),
    ("xla__gpubench__nv_maxtext_1n1g_jit_train_step_before_optimization", "pow.0.0", "MaxText, training step",
     "64 powers would become 2 million: a broadcast repeats what is fused into it for every element of its result."),
    ("rocm__detr__infer__1gpu__predict_step_m0468", "exp.21.0", "DETR, inference",
     "The same form as the powers of MaxText, but 7 × 7 repeats of 64 exponentials cost less than a launch."),
    ("rocm__llama3_8b__train__allgpu__train_step_m0099", "transpose.392.0", "Llama 3 8B, training step",
     "Each of 32 heads would read the mask again, and across its rows: 31 times the time."),
    ("rocm__detr__infer__1gpu__predict_step_m0468", "reduce.9.0", "DETR, inference",
     "A reduction, and fused: it adds four numbers for each element (a product was split in four), so it is done like an elementwise operation."),
    ("rocm__imagenette__train__allgpu__train_step_m0747", "gemm_fusion_dot", "a ResNet's training step (imagenette)",
     "A matrix product has a kernel of its own kind already; this pass leaves it alone."),
    ("xla__tools_data__mobilenet_v2", "add.476.0", "MobileNet v2, training step",
     "Two users: the addition is done in both, which is less than a launch and an array of 144 numbers."),
    ("rocm__imagenette__train__allgpu__train_step_m0747", "select_n.105.0", "a ResNet's training step (imagenette)",
     "Several users again, but now each would read the three large inputs of the select again."),
    ("rocm__resnet50__infer__1gpu__predict_step_m1589", "reduce.272.0", "ResNet-50, inference",
     "A sum in two steps. Fused, each of 1,024 results would have to add 25,088 numbers by itself."),
    ("rocm__mixtral_8x7b__infer__4gpu__generate_jit_m0099", "dynamic_slice.12.0", "Mixtral 8x7B, generation",
     "A slice only says where to read. Fused, the conversion reads the weights in their place."),
    ("rocm__llama3_8b__infer__1gpu__prefill_jit_m0087", "sin.4.0", "Llama 3 8B, prefill",
     "Its only user is a bitcast, which is no kernel: there is nothing to be saved."),
    ("xla__gpubench__nv_maxtext_1n1g_jit_train_step_before_optimization", "divide.11.0", "MaxText, training step",
     "One division is done twice, in the sine and in the cosine: cheaper than to store it and read it twice."),
    ("rocm__imagenette__train__allgpu__train_step_m0747", "mul.659.0", "a ResNet's training step (imagenette)",
     "A scatter changes its first operand in its place, so that must be an array in memory."),
    ("rocm__llama3_8b__train__allgpu__train_step_m0099", "pad.18.0", "Llama 3 8B, training step",
     "A pad is a read with a condition, and it joins what uses it."),
    ("rocm__llama3_8b__infer__1gpu__prefill_jit_m0087", "concatenate.18.0", "Llama 3 8B, prefill",
     "Through the transpose the two pieces would be read across their rows: many small reads in the place of few wide ones."),
    ("rocm__llama3_8b__infer__1gpu__generate_jit_m2266", "concatenate.1.0", "Llama 3 8B, generation",
     "A concatenate is a choice of where to read from: here it joins an elementwise user."),
]
LINE = re.compile(r"^  (?:ROOT )?%?([\w.\-]+) = (\([^=]*?\)|\S+) ([\w\-]+)\(([^)]*)\)(.*)$")
DROPPED = re.compile(r', (?:metadata=\{(?:[^{}"]|"(?:[^"\\]|\\.)*"|\{[^{}]*\})*\}|sharding=\{[^{}]*\})')


class Instruction:
    def __init__(self, match):
        self.name, self.shape, self.opcode, operands, rest = match.groups()
        self.operands = [one.strip().split()[-1].lstrip("%") for one in operands.split(",") if one.strip()]
        self.literal = operands if self.opcode in ("constant", "parameter") else ""
        rest = re.sub(r", (?:backend_config|frontend_attributes)=\{.*$", "", rest)
        self.attributes = DROPPED.sub("", rest)
        self.called = re.findall(r"(?:calls|to_apply)=%?([\w.\-]+)", self.attributes)

    def line(self, root=False, name=None):
        operands = self.literal or ", ".join(self.operands)
        return f"  {'ROOT ' if root else ''}{name or self.name} = {self.shape} {self.opcode}({operands}){self.attributes}"


class Dump:
    def __init__(self, folder, name):
        text = subprocess.run(["tar", "-I", "zstd", "-xOf", folder / (name + ".tar.zst"), "--wildcards",
                               "*priority_fusion_dump.txt"], capture_output=True, check=True, text=True).stdout
        module = re.search(r'^hlo_module_before_fusion: "((?:[^"\\]|\\.)*)"', text, re.M).group(1)
        module = re.sub(r"\\(.)", lambda m: "\n" if m.group(1) == "n" else m.group(1), module)
        self.device = re.search(r'^  name: "(.*)"', text, re.M).group(1)
        self.steps = []
        for kind, body in re.findall(r"^fusion_steps \{\n  (\w+) \{\n(.*?)^  \}\n\}", text, re.M | re.S):
            fields = collections.defaultdict(list)
            for field, value in re.findall(r"^    (\w+): (.*)$", body, re.M):
                fields[field].append(value.strip('"'))
            self.steps.append((kind, fields))
        self.computations, self.at = {}, {}
        for line in module.split("\n"):
            if line.endswith("{") and not line.startswith(" "):
                name = line.removeprefix("ENTRY ").split()[0].lstrip("%")
                body = []
                self.computations[name] = body
            elif match := LINE.match(line):
                one = Instruction(match)
                body.append((one, line.startswith("  ROOT ")))
                self.at[one.name] = (name, one)

    def users(self, name):
        computation = self.computations[self.at[name][0]]
        return [one.name for one, _ in computation if name in one.operands]

    def decision(self, producer):
        """The first that was said of it, which has to stand at the end."""
        later, fused = {}, collections.defaultdict(list)
        for kind, step in self.steps:
            if kind == "fusion":
                fused[step["producer_name"][0]].append(step["consumer_name"][0])
                later[step["consumer_name"][0]] = step["fusion_name"][0]
        kind, said = next(step for step in self.steps if step[1]["producer_name"] == [producer])
        consumers = said["consumer_names"] if kind == "update_priority" else self.users(producer)
        became = [producer]
        while became[-1] in later and later[became[-1]] != became[-1]:
            became.append(later[became[-1]])
        if fused.get(producer):
            assert sorted(fused[producer]) == sorted(consumers), (producer, fused[producer], consumers)
        else:
            assert not any(fused.get(one) for one in became), (producer, "is fused later")
        number = lambda field: float(said[field][0]) if kind == "update_priority" else None
        result = {"producer": producer, "consumers": consumers, "verdict": "fused" if fused.get(producer) else "declined",
                  "us_fused": number("us_fused"), "us_unfused": number("us_unfused"), "reason": "".join(said["reason"])}
        if kind == "update_priority":
            assert (result["us_fused"] < result["us_unfused"]) == (result["verdict"] == "fused"), result
        return result

    def module(self, producer, consumers):
        """The instructions of the decision; what they are made of become parameters, except small constants."""
        body = [one for one, _ in self.computations[self.at[producer][0]]]
        wanted = [one for one in body if one.name == producer or one.name in consumers]
        names, inputs = {one.name for one in wanted}, []
        for one in wanted:
            for o in one.operands:
                if o not in names and o not in inputs:
                    inputs.append(o)
        small = lambda one: one.opcode == "constant" and len(one.literal) < 40
        lines, parameters = [], 0
        for name in inputs:
            one = self.at[name][1]
            lines.append(one.line() if small(one) else f"  {name} = {one.shape} parameter({parameters})")
            parameters += not small(one)
        lines += [one.line(root=len(consumers) == 1 and one.name == consumers[0]) for one in wanted]
        if len(consumers) > 1:
            shapes = ", ".join(self.at[one][1].shape for one in consumers)
            lines.append(f"  ROOT results = ({shapes}) tuple({', '.join(consumers)})")
        called, todo = [], [name for one in wanted for name in one.called]
        while todo:
            name = todo.pop(0)
            if name not in called:
                called.append(name)
                todo += [other for one, _ in self.computations[name] for other in one.called]
        text = "HloModule decision\n\n"
        for name in reversed(called):
            text += name + " {\n" + "\n".join(one.line(root) for one, root in self.computations[name]) + "\n}\n\n"
        return text + "ENTRY main {\n" + "\n".join(lines) + "\n}\n"


def main():
    folder, dumps, decisions = pathlib.Path(sys.argv[1]), {}, []
    for name, producer, model, hint in PICKS:
        dump = dumps.setdefault(name, None) or Dump(folder, name)
        dumps[name] = dump
        decision = dump.decision(producer)
        decisions.append({"model": model, "device": dump.device, "dump": name, **decision, "hint": hint,
                          "text": dump.module(producer, decision["consumers"])})
    text = json.dumps({"decisions": decisions}, indent=1, ensure_ascii=False) + "\n"
    if "--check" in sys.argv:
        if OUT.read_text() != text:
            sys.exit(f"{OUT.name} is not what the dumps say: tests/dev/docs/lesson_decisions.py DUMPS makes it anew")
    else:
        OUT.write_text(text)
    print(f"{len(decisions)} decisions, {sum(d['verdict'] == 'fused' for d in decisions)} fused, {len(text)} bytes")


if __name__ == "__main__":
    main()
