"""Which folder may include which: the table below, nothing else; and no folder has over 30 files.

layers_test.py SOURCE_FOLDER
"""
import collections
import pathlib
import re
import sys

MOST_FILES = 30
COUNTED = (".cc", ".h", ".def", ".py", ".ts", ".js")
# A folder and all that it includes, from the ground up: each names those above it alone, so no two include each other,
# whatever lies between them. What is no longer included leaves its row. Tests include what they like of these.
ALLOWED = {
    # What users include has nothing of ours.
    "include/hlo": "",
    "ir/base": "",
    "ir/target": "ir/base",
    "ir/types": "ir/base",
    "ir": "ir/base ir/types",
    "ir/query": "ir/base ir",
    "ir/sharding": "ir",
    "ir/print": "ir/base ir ir/sharding",
    "ir/inference": "ir",
    "ir/library": "ir/base ir ir/print",
    "ir/cost": "ir/base ir/target ir/types ir ir/query ir/library",
    "ir/verify": "ir/base ir/types ir ir/sharding ir/inference ir/library",
    "ir/analysis/fusion": "ir/target ir/types ir",
    "ir/analysis/dataflow": "ir/base ir/target ir ir/sharding ir/analysis/fusion",
    "ir/analysis/performance": "ir/base ir/target ir ir/analysis/fusion ir/analysis/dataflow",
    "ir/analysis/schedule": "ir ir/query",
    "ir/program": "ir/base ir/target ir ir/query ir/print ir/analysis/fusion ir/analysis/dataflow ir/analysis/schedule",
    "ir/eval": "ir/base ir/types ir ir/inference ir/program",
    "ir/eval/operations": "ir/base ir/types ir ir/query ir/sharding ir/library ir/eval",
    "ir/eval/library": "ir/base ir/types ir ir/library ir/eval",
    "parser": "ir/base ir ir/sharding ir/print ir/inference",
    "parser/excerpt": "ir/base ir parser",
    "parser/proto": "ir/base ir ir/sharding ir/print ir/library parser",
    "dump": "ir/base ir ir/query ir/sharding ir/print",
    "passes": "ir/base ir/types ir ir/inference ir/verify ir/analysis/schedule",
    "passes/pipelines": "ir/base ir/target passes",
    "passes/layout": "ir/types ir ir/sharding ir/library ir/analysis/fusion ir/analysis/dataflow passes",
    "passes/loops": "ir ir/query ir/eval passes",
    "passes/collectives": "ir/target ir ir/query ir/sharding ir/analysis/schedule passes passes/layout passes/loops",
    "passes/library_calls": "ir/target ir ir/sharding ir/library ir/analysis/fusion ir/eval passes passes/layout",
    "passes/simplify": "ir/base ir/query ir/inference ir/eval passes passes/library_calls",
    "passes/simplify/algebraic": "ir/query ir/eval passes passes/collectives",
    "passes/expand": "ir/base ir/library passes",
    "passes/expand/linear_algebra": "passes/expand",
    "passes/xla_2019": "ir/library passes",
    "passes/backend": "ir/target ir ir/query ir/analysis/fusion ir/program ir/eval passes",
    "passes/schedule": "ir/base ir/target ir ir/sharding ir/verify ir/analysis/dataflow ir/analysis/schedule passes passes/collectives"
                       " passes/backend",
    "passes/buffers": "ir/base ir/types ir/sharding ir/analysis/fusion ir/analysis/dataflow ir/analysis/performance passes passes/backend",
    "passes/fusion": "ir/base ir/types ir ir/query ir/analysis/fusion ir/analysis/performance passes passes/pipelines passes/layout passes/backend",
    "gpu_exec/driver": "ir/base ir/eval",
    "gpu_exec/emit": "ir/base ir ir/query ir/eval",
    "gpu_exec/lower": "ir/base ir/types ir ir/query ir/inference ir/library ir/cost ir/verify ir/program ir/eval gpu_exec/driver gpu_exec/emit",
    "gpu_exec/libraries": "ir/base ir/eval gpu_exec/driver",
    "gpu_exec/devices": "ir/base ir ir/eval gpu_exec/driver gpu_exec/emit gpu_exec/libraries",
    "gpu_exec": "ir/base ir/types ir ir/eval gpu_exec/driver gpu_exec/lower gpu_exec/devices",
    "viewer/layout": "ir/base ir ir/print dump",
    "replay/os": "ir/base ir",
    "replay/os/process": "ir/base replay/os",
    "replay/record/match": "ir/base ir ir/query",
    "replay/record/recording": "ir/base ir passes replay/os replay/record/match",
    "replay/record/logs": "parser/excerpt",
    "replay/record/files": "ir/base ir ir/print parser parser/excerpt parser/proto dump replay/os replay/record/recording replay/record/logs",
    "replay/record/importer": "ir/base parser parser/proto replay/os replay/record/match replay/record/recording replay/record/files",
    "replay/record/start": "ir/base ir/target ir ir/query ir/sharding ir/cost parser passes passes/pipelines replay/os replay/record/recording"
                           " replay/record/files",
    "replay/smaller": "ir/types ir ir/library ir/cost ir/verify ir/eval parser",
    "replay/compare": "ir/base ir ir/query ir/sharding ir/print ir/cost ir/eval parser passes passes/pipelines replay/os replay/record/files"
                      " replay/record/start",
    "replay/judge/arguments": "ir/base ir/types ir ir/query ir/program ir/eval parser gpu_exec replay/os replay/record/files replay/compare",
    "replay/judge/contract": "ir/base ir/types ir/eval replay/os replay/judge/arguments",
    "replay/judge/values": "ir/base ir/types ir ir/query ir/inference ir/library ir/eval passes replay/compare replay/judge/arguments",
    "replay/judge": "ir/base ir/types ir ir/query ir/print ir/verify ir/eval parser passes gpu_exec replay/os replay/os/process replay/compare"
                    " replay/judge/arguments replay/judge/values",
    "replay/judge/inside": "ir/base ir/types ir/library ir/eval replay/record/match replay/judge/values replay/judge",
    "replay/judge/chosen/elements": "ir/base ir/types ir ir/sharding ir/library ir/eval ir/eval/operations ir/eval/library parser replay/compare"
                                    " replay/judge/values",
    "replay/judge/chosen/operations": "ir/base ir/types ir/query ir/library ir/eval ir/eval/operations ir/eval/library replay/judge/chosen/elements",
    "replay/judge/chosen/walk": "ir/base ir/types ir ir/eval ir/eval/library replay/judge/values replay/judge/chosen/elements",
    "replay/judge/chosen/pair": "ir/base ir/types ir ir/query ir/cost ir/eval parser passes/loops replay/judge/arguments replay/judge/values"
                                " replay/judge replay/judge/chosen/elements replay/judge/chosen/walk",
    "replay/hunt": "ir/base ir/types ir ir/print ir/verify ir/program parser parser/excerpt passes passes/pipelines replay/os replay/os/process"
                   " replay/record/recording replay/record/logs replay/judge/arguments replay/judge replay/judge/chosen/pair",
    "replay/hunt/inside": "ir/base ir/eval replay/judge/values replay/judge/inside replay/hunt",
    "replay/report/memory": "ir/base ir/types ir ir/query ir/verify ir/program parser passes/backend passes/schedule replay/os replay/record/files"
                            " replay/record/start",
    "replay/report/kernels": "ir/base ir/target ir/types ir ir/query ir/library ir/cost ir/analysis/fusion ir/program ir/eval parser/proto"
                             " passes/backend replay/os replay/record/recording replay/record/files replay/report/memory",
    "replay/report/measured": "ir/base ir ir/query ir/cost ir/program ir/eval parser parser/proto passes/backend replay/record/files"
                              " replay/report/memory",
    "replay/report/explain": "ir/query ir/sharding ir/print replay/os replay/record/match replay/record/recording",
    "replay/report/findings": "ir/base ir/query ir/sharding ir/inference ir/verify passes replay/record/match replay/report/kernels"
                              " replay/report/explain",
    "replay/report/compile": "ir/base ir/types ir ir/query ir/sharding ir/print parser replay/os replay/record/recording replay/record/logs"
                             " replay/record/files replay/report/kernels",
    "replay/report/overview": "ir ir/query ir/program parser replay/os replay/record/files replay/record/start replay/compare replay/report/memory"
                              " replay/report/kernels replay/report/measured replay/report/explain replay/report/findings replay/report/compile",
    "replay/report/levers": "ir/base ir ir/query ir/verify passes passes/loops replay/os replay/report/memory replay/report/explain"
                            " replay/report/findings replay/report/overview",
    "replay/report/what_if": "ir/target ir ir/query ir/verify ir/analysis/performance passes passes/pipelines passes/backend replay/os"
                             " replay/record/start replay/compare replay/report/memory replay/report/kernels",
    "replay/emitted": "ir/base ir ir/verify ir/eval gpu_exec/driver gpu_exec/lower gpu_exec replay/judge/arguments replay/hunt replay/report/kernels",
    "replay/installed": "ir/base ir/target ir replay/os replay/os/process replay/record/recording replay/record/files replay/record/start"
                        " replay/compare replay/judge replay/hunt replay/report/kernels replay/report/overview",
    "replay/mcp": "replay/os",
    # What the page is answered by: all that needs no device, and nothing of gpu_exec.
    "viewer/engine": "ir/base ir/types ir ir/query ir/print ir/verify ir/program ir/eval parser parser/excerpt parser/proto dump passes/pipelines"
                     " passes/backend viewer/layout replay/os replay/record/match replay/record/recording replay/record/files replay/record/start"
                     " replay/compare replay/judge/arguments replay/judge replay/hunt replay/report/memory replay/report/kernels"
                     " replay/report/explain replay/report/findings replay/report/overview",
    "viewer": "ir/base parser/proto dump replay/os replay/record/recording replay/compare replay/report/measured viewer/engine",
    "replay/replayer": "ir/target ir/print ir/program dump passes/pipelines passes/backend gpu_exec/emit gpu_exec replay/os replay/os/process"
                       " replay/record/recording replay/record/start viewer",
    "replay/library": "include/hlo ir/base ir ir/query ir/print ir/verify ir/program ir/eval parser parser/proto dump passes passes/pipelines"
                      " gpu_exec replay/os replay/record/recording replay/record/files replay/record/start replay/judge/arguments replay/hunt"
                      " replay/report/overview viewer replay/replayer",
    "replay/cli": "include/hlo ir/base ir/target ir ir/query ir/print ir/verify ir/eval parser dump passes passes/pipelines replay/os"
                  " replay/record/recording replay/record/files replay/record/start replay/smaller replay/compare replay/judge/arguments replay/judge"
                  " replay/judge/chosen/pair replay/report/kernels replay/report/measured replay/report/overview replay/report/what_if"
                  " replay/installed viewer replay/replayer",
    "replay/cli/files": "ir/base ir/print ir/verify ir/program parser parser/proto dump gpu_exec/emit replay/os replay/record/files replay/compare"
                        " replay/judge/arguments replay/report/kernels replay/cli",
    "replay/cli/look": "ir/query ir/print ir/verify ir/program parser parser/excerpt parser/proto dump passes/pipelines replay/os replay/os/process"
                       " replay/record/recording replay/record/logs replay/record/files replay/record/start replay/compare replay/judge/arguments"
                       " replay/judge replay/report/memory replay/report/kernels replay/report/measured replay/report/explain replay/report/findings"
                       " replay/report/overview replay/mcp viewer/engine viewer replay/replayer replay/cli",
    "replay/cli/run": "ir/query ir/print ir/program ir/eval parser passes/pipelines gpu_exec/driver gpu_exec replay/os replay/os/process"
                      " replay/record/recording replay/record/files replay/record/start replay/compare replay/judge/arguments replay/judge/contract"
                      " replay/judge replay/hunt replay/report/kernels replay/report/measured replay/emitted replay/installed viewer replay/replayer"
                      " replay/cli",
    "replay/cli/cost": "ir/base ir/query ir/print ir/cost ir/verify ir/program parser/proto passes/pipelines gpu_exec/emit replay/os"
                       " replay/os/process replay/record/files replay/record/start replay/hunt replay/report/memory replay/report/kernels"
                       " replay/report/compile replay/report/overview replay/report/levers replay/report/what_if replay/replayer replay/cli",
    "replay/cli/triage": "ir/base ir/types ir ir/query ir/print ir/program ir/eval passes replay/os replay/os/process replay/record/recording"
                         " replay/record/logs replay/record/files replay/record/start replay/compare replay/judge/arguments replay/judge/contract"
                         " replay/judge/values replay/hunt replay/report/kernels replay/report/explain replay/installed replay/cli",
    "replay/cli/bisect": "ir/base ir/query ir/print ir/verify ir/program ir/eval parser passes/pipelines replay/os replay/record/files"
                         " replay/compare replay/judge/arguments replay/judge/contract replay/judge/values replay/judge replay/judge/chosen/pair"
                         " replay/hunt replay/hunt/inside replay/installed replay/cli replay/cli/triage",
}
# (from, to): files that still do it. A file that no longer does must leave its row.
BREACHES = {
    # Attributes are kept as texts and parsed again to be written.
    ("dump", "parser"): {"dump/proto_writer_attributes.cc", "dump/proto_writer_shapes.cc"},
    ("dump", "parser/proto"): {"dump/proto_writer.cc"},
    # The lowering to device programs runs passes of its own.
    ("gpu_exec/lower", "passes"): {"gpu_exec/lower/device_program.cc", "gpu_exec/lower/host_module.cc", "gpu_exec/lower/lowering.cc",
                                   "gpu_exec/lower/lowering.h", "gpu_exec/lower/matrix_vector.cc", "gpu_exec/lower/row_groups.cc"},
    ("gpu_exec/lower", "passes/backend"): {"gpu_exec/lower/device_program.cc"},
}
LAYERS = list(ALLOWED)


def layer_of(path):
    return path.rpartition("/")[0]


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


def crowded(root):
    """Folders of sources and tests with too many files."""
    held = collections.Counter()
    for top in sorted({layer.split("/")[0] for layer in LAYERS} | {"tests", "python"}):
        for path in (root / top).rglob("*"):
            if path.suffix in COUNTED:
                held[path.parent.relative_to(root).as_posix()] += 1
    return [f"{folder} has {n} files, over {MOST_FILES}" for folder, n in sorted(held.items()) if n > MOST_FILES]


def arrows_up():
    """Rows that name what is not above them in the table."""
    place = {layer: k for k, layer in enumerate(LAYERS)}
    pairs = [(layer, other) for layer, others in ALLOWED.items() for other in others.split()] + list(BREACHES)
    return [f"{layer} may not include {other}, which is not above it in the table" for layer, other in pairs
            if place.get(other, len(place)) >= place.get(layer, -1)]


def of_tests(root):
    """Tests share what lies in tests/common, and nothing of each other's folders."""
    wrong = []
    for path in sorted(p for p in (root / "tests").rglob("*") if p.suffix in (".cc", ".h")):
        own = path.parent.relative_to(root).as_posix()
        for other in re.findall(r'^\s*#include "(tests/[^"]+)"', path.read_text(), re.M):
            if layer_of(other) not in (own, "tests/common"):
                wrong.append(f"{path.relative_to(root)}: {own} may not include {other}")
    return wrong


def main():
    root = pathlib.Path(sys.argv[1])
    wrong, seen, includes = [], {}, 0
    for path in sorted(p for folder in {layer.split("/")[0] for layer in LAYERS} for p in (root / folder).rglob("*")):
        if path.suffix not in (".cc", ".h", ".def"):
            continue
        name = path.relative_to(root).as_posix()
        own = layer_of(name)
        if own not in ALLOWED:
            wrong.append(f"{name}: {own} has no row in this table")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = re.match(r'\s*#include "([^"]+)"', line)
            if not found or "/" not in found.group(1):
                continue
            includes += 1
            included = found.group(1)
            other = layer_of("include/" + included if included.startswith("hlo/") else included)
            if other == own:
                continue
            seen.setdefault((own, other), set()).add(name)
            if other not in ALLOWED:
                wrong.append(f"{name}:{number}: {included} is in no folder of this table")
            elif other not in ALLOWED[own].split() and name not in BREACHES.get((own, other), set()):
                wrong.append(f"{name}:{number}: {own} may not include {other} ({included})")
    for layer, others in ALLOWED.items():
        wrong += [f"nothing of {layer} includes {other}: take it out of its row" for other in others.split() if (layer, other) not in seen]
    for pair, files in BREACHES.items():
        for name in sorted(files - seen.get(pair, set())):
            wrong.append(f"{name} no longer includes {pair[1]}: take it out of BREACHES")
    wrong += arrows_up() + crowded(root) + of_tests(root) + page_circles(root)
    print("\n".join(wrong + [f"{includes} includes, {len(seen)} arrows between {len(LAYERS)} folders, {sum(map(len, BREACHES.values()))} files with known breaches"]))
    print(f"{includes - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong or includes < 500 else 0


sys.exit(main())
