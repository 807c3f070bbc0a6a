"""Which folder may include which: the table below, nothing else. Breaches that are known are listed and only grow fewer.

layers_test.py SOURCE_FOLDER
"""
import pathlib
import re
import sys

# From the ground up. `tests` may include all of them.
LAYERS = ["include/hlo", "ir/base", "ir", "ir/eval", "parser", "dump", "passes", "gpu_exec", "viewer", "viewer/layout", "viewer/engine", "replay/os",
          "replay/record", "replay/compare", "replay/judge", "replay/hunt", "replay/report", "replay/smaller", "replay/emitted", "replay/mcp", "replay/installed", "replay/library", "replay/cli"]
BELOW_REPLAY = {"ir/base", "ir", "ir/eval", "parser", "dump", "passes", "gpu_exec"}
REPLAY = {layer for layer in LAYERS if layer.startswith("replay/")} - {"replay/mcp", "replay/library", "replay/cli"}
ALLOWED = {
    "ir/base": set(),
    "ir": {"ir/base"},
    "ir/eval": {"ir/base", "ir"},
    "parser": {"ir/base", "ir"},
    "dump": {"ir/base", "ir"},
    "passes": {"ir/base", "ir", "ir/eval"},
    "gpu_exec": {"ir/base", "ir", "ir/eval"},
    "replay/os": {"ir/base", "ir"},
    "replay/record": BELOW_REPLAY | {"replay/os"},
    "replay/compare": BELOW_REPLAY | {"replay/os", "replay/record"},
    "replay/judge": BELOW_REPLAY | {"replay/os", "replay/record", "replay/compare"},
    "replay/hunt": BELOW_REPLAY | {"replay/os", "replay/record", "replay/compare", "replay/judge"},
    "replay/report": BELOW_REPLAY | {"replay/os", "replay/record", "replay/compare"},
    "replay/smaller": {"ir/base", "ir", "ir/eval", "parser"},
    "replay/emitted": BELOW_REPLAY | {"replay/os", "replay/record", "replay/compare", "replay/judge", "replay/hunt", "replay/report"},
    "replay/mcp": {"ir/base", "replay/os"},
    "replay/installed": BELOW_REPLAY | {"replay/os", "replay/record", "replay/compare", "replay/judge", "replay/hunt", "replay/report"},
    "viewer": {"ir/base", "ir", "parser", "dump", "viewer/engine"} | REPLAY,
    "viewer/layout": {"ir/base", "ir", "dump"},
    # What the page is answered by: all that needs no device, and nothing of gpu_exec.
    "viewer/engine": {"ir/base", "ir", "ir/eval", "parser", "dump", "passes", "viewer/layout"} | REPLAY,
    "replay/library": BELOW_REPLAY | REPLAY | {"viewer", "include/hlo"},
    "include/hlo": set(),  # what users include stands alone
    "replay/cli": set(LAYERS) - {"replay/library"} | {"include/hlo"},
}
# (from, to): files that still do it. A file that no longer does must leave its row.
BREACHES = {
    # Attributes are kept as texts and parsed again to be written.
    ("dump", "parser"): {"dump/proto_writer.cc", "dump/proto_writer_attributes.cc",
                         "dump/proto_writer_shapes.cc"},
    # The lowering to device programs runs passes of its own.
    ("gpu_exec", "passes"): {"gpu_exec/device_program.cc", "gpu_exec/host_module.cc", "gpu_exec/lowering.cc", "gpu_exec/lowering.h",
                             "gpu_exec/matrix_vector.cc", "gpu_exec/row_groups.cc"},
    # The replayer writes the pages itself.
    ("replay/record", "viewer"): {"replay/record/replayer.cc"},
}


def layer_of(path):
    return max((layer for layer in LAYERS if path.startswith(layer + "/")), key=len, default=None)


def page_circles(root):
    """Scripts of the page that import each other in a circle, types included."""
    page, imports = root / "viewer/page", {}
    for path in page.rglob("*.ts"):
        targets = re.findall(r"^(?:import|export)\b[^;]*?\bfrom '(\.[^']+)'", path.read_text(), re.M)
        imports[path.resolve()] = [(path.parent / (target + ".ts")).resolve() for target in targets]
    wrong, done = [], set()

    def visit(path, way):
        if path in way:
            wrong.append("a circle of imports: " + " → ".join(p.name for p in [*way[way.index(path):], path]))
        elif path in imports and path not in done:
            for target in imports[path]:
                visit(target, [*way, path])
            done.add(path)

    for path in sorted(imports):
        visit(path, [])
    return wrong if len(imports) > 30 else ["the page's scripts are not found"]


def main():
    root = pathlib.Path(sys.argv[1])
    wrong, seen, includes = [], {}, 0
    for path in sorted(p for folder in {layer.split("/")[0] for layer in LAYERS} for p in (root / folder).rglob("*")):
        if path.suffix not in (".cc", ".h"):
            continue
        name = path.relative_to(root).as_posix()
        own = layer_of(name)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = re.match(r'\s*#include "([^"]+)"', line)
            if not found or "/" not in found.group(1):
                continue
            includes += 1
            included = found.group(1)
            other = layer_of("include/" + included if included.startswith("hlo/") else included)
            if other is None:
                wrong.append(f"{name}:{number}: {found.group(1)} is in no layer of this table")
            elif other != own and other not in ALLOWED[own]:
                seen.setdefault((own, other), set()).add(name)
                if name not in BREACHES.get((own, other), set()):
                    wrong.append(f"{name}:{number}: {own} may not include {other} ({found.group(1)})")
    for pair, files in BREACHES.items():
        for name in sorted(files - seen.get(pair, set())):
            wrong.append(f"{name} no longer includes {pair[1]}: take it out of BREACHES")
    wrong += page_circles(root)
    print("\n".join(wrong + [f"{includes} includes, {sum(map(len, BREACHES.values()))} files with known breaches"]))
    print(f"{includes - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong or includes < 500 else 0


sys.exit(main())
