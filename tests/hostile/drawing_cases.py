"""Drawings of modules whose names and texts want to be more than that."""
import re
import xml.etree.ElementTree

import tool as hostile

EVIL = 'x\\"]; evil [label=\\"y\\" \\\\N \\\\ <b>&amp;</b> é'  # as HLO text writes it: quotes and backslashes escaped
MODULE = f"""HloModule m

ENTRY e {{
  p = f32[4] parameter(0), metadata={{op_name="{EVIL}" source_file="{EVIL}"}}
  q = f32[4] custom-call(p), custom_call_target="{EVIL}"
  ROOT r = f32[4] add(p, q), metadata={{op_name="ends in a backslash \\\\"}}
}}
"""


def nested(levels):
    """Fusions in fusions, each computation once."""
    text = "HloModule m\nfun0 { a = f32[4] parameter(0) ROOT r = f32[4] negate(a) }\n"
    for k in range(1, levels):
        text += f"fun{k} {{ a = f32[4] parameter(0) ROOT r = f32[4] fusion(a), kind=kLoop, calls=fun{k - 1} }}\n"
    return text + f"ENTRY e {{ a = f32[4] parameter(0) ROOT r = f32[4] fusion(a), kind=kLoop, calls=fun{levels - 1} }}\n"


def called(levels):
    text = "HloModule m\nfun0 { a = f32[4] parameter(0) b = f32[4] negate(a) ROOT r = f32[4] add(a, b) }\n"
    for k in range(1, levels):
        text += f"fun{k} {{ a = f32[4] parameter(0) b = f32[4] negate(a) ROOT r = f32[4] call(b), to_apply=fun{k - 1} }}\n"
    return text + f"ENTRY e {{ a = f32[4] parameter(0) ROOT r = f32[4] call(a), to_apply=fun{levels - 1} }}\n"


def cases(tool, _data, tmp):
    def texts_are_texts():
        (tmp / "evil.hlo").write_text(MODULE)
        hostile.run(tool, "convert", tmp / "evil.hlo", tmp / "evil.dot").expect(0)
        drawn = hostile.run(tool, "convert", tmp / "evil.hlo", tmp / "evil.svg")
        if drawn.code == 2:  # a machine without Graphviz says so
            return drawn.expect(2, "apt-get install graphviz")
        root = xml.etree.ElementTree.fromstring((tmp / "evil.svg").read_text())
        nodes = [g for g in root.iter() if re.match(r"node\b", g.get("class", ""))]
        assert len(nodes) == 4, f"{len(nodes)} nodes: parameter, call, add, ROOT"
        shown = "".join(root.itertext())
        assert 'x"]; evil [label="y" \\N \\' in shown, shown
        return drawn.expect(0)

    yield "drawing: names and texts stay texts", texts_are_texts

    def deep(name, text):
        def case():
            (tmp / f"{name}.hlo").write_text(text)
            result = hostile.run(tool, "convert", tmp / f"{name}.hlo", tmp / f"{name}.dot", seconds=30)
            if result.code:
                result.expect(2, "too deep")
        return case

    yield "drawing: fusions nested 300 deep", deep("fusions", nested(300))
    yield "drawing: calls nested 5000 deep", deep("calls", called(5000))
