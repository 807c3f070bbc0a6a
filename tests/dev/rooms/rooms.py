#!/usr/bin/env python3
"""Rooms: moves files into folders of at most 30 and rewrites what names them. rooms.py ROOT [--only=FOLDER,...] [--dry]

--dry measures alone: folders, files in each, arrows, circles. --only: the moves out of these folders alone (then tests/layers_test.py
is left as it is). Exit 1 where a stem is in no row of MOVES, where folders include each other in a circle, or where a folder has
over 30 files; nothing is moved then. Run it once, on a tree with nothing uncommitted.
"""
import collections
import os
import pathlib
import re
import subprocess
import sys

MOST = 30
COUNTED = (".cc", ".h", ".def", ".py", ".ts", ".js")
MOVED = (".cc", ".h", ".def", ".inc", ".py", ".js")
TOPS = ("include", "ir", "parser", "dump", "passes", "gpu_exec", "viewer", "replay")
# Old folder: new folder: stems. A stem moves its .cc, .h, .def, .inc together; the folder's own name is what stays.
MOVES = {
    "ir": {
        "ir": "opcode opcodes attribute attributes universe module module_edits module_users heir marks snapshot precompiled"
              " leaves backend_config",
        "ir/query": "fingerprint find_instruction frontend_attribute source_lines reducer loop_config",
        "ir/types": "element_type shape dims tiling literal",
        "ir/sharding/sharding": "sharding aliasing collective_groups",
        "ir/print/print": "print print_attributes print_header print_literal printer",
        "ir/inference": "shape_inference precision",
        "ir/library": "library_calls library_attention library_products library_rules attention lapack cudnn cudnn_epilogue tuning tuning_key",
        "ir/cost/cost": "cost cost_needed cost_products",
        "ir/verify": "verifier verifier_buffers verifier_devices verifier_indexing verifier_layouts verifier_module verifier_rules"
                     " verifier_shapes verifier_sharding operation_rules",
        "ir/program": "buffer thunk thunk_text",
    },
    "ir/analysis": {
        "ir/analysis/fusion": "fusion_view fusion_analysis launch reduction operand_dims tile_maps tiling triton_support",
        "ir/analysis/dataflow/dataflow": "points_to dataflow alias_info buffers ordering",
        "ir/analysis/performance": "gpu_cost_analysis gpu_performance_model tiled_time fusibility",
        "ir/analysis/schedule": "messages execution_streams schedule_update",
    },
    "ir/eval": {
        "ir/eval": "evaluator evaluator_checks value value_doubles devices spare_arrays kernels compare widen inputs blas",
        "ir/eval/operations": "collective contraction conversions convolution_numbers elementwise indexing integer_math linear_algebra movement plain_reduction random"
                              " reduction sort tiled_bitcast window_walk",
        "ir/eval/library": "attention attention_call cudnn custom_calls gemm_call grouped_products lapack_calls matrices matrix_calls",
    },
    "parser": {
        "parser": "parser parser_impl byte_table check_instruction parse_async parse_attribute parse_computation parse_header parse_literal"
                  " parse_lone parse_metadata parse_module parse_shape parse_sharding parse_structured parse_value parse_window",
        "parser/excerpt/excerpt": "excerpt excerpt_parts excerpt_shapes pieces source_text",
        "parser/proto": "proto_attributes proto_literal proto_reader proto_shapes proto_text executable gzip unpack tuning_results",
    },
    "passes": {
        "passes": "pass passes rewrite scope",
        "passes/pipelines": "pipelines",
    },
    "passes/backend": {
        "passes/backend": "backend constant_names rename_instructions sort_iota_fusion reduce_decomposer dynamic_slice_annotator host_offloader",
        "passes/library_calls": "conv_fuser conv_rewriter cusolver_rewriter triangular_solve_rewriter tuned_configs dot_algorithms dot_normalizer"
                                " dot_preparation gemm_broadcast_folding gemm_call gemm_configs gemm_epilogues gemm_padding gemm_rewriter"
                                " gemm_rewriter_fp8 gemm_tiles",
        "passes/collectives": "async_collective_annotator async_collective_creator collective_combiners collective_kernel_strategy"
                              " convert_async_collectives_to_sync",
        "passes/schedule": "heap_simulator memory_scheduler schedule_peak loop_schedule_linearizer scheduling_instruction_annotator remat_memory"
                           " rematerialization",
        "passes/buffers": "buffer_assignment buffer_check buffer_values xla_buffers xla_heap copy_fusion copy_insertion copy_removal",
    },
    "passes/expand": {
        "passes/expand": "batchnorm_expander bitcast_dtypes_expander client conv_padding_legalization convolution_4d_expander"
                         " convolution_group_converter convolution_pred_expander counted_loops dot_decomposer dynamic_index_splitter"
                         " dynamic_padder element_type_converter float_normalization gather_scatter get_dimension_size_rewriter"
                         " gpu_hlo_support_checker logistic_expander permutation_sort_simplifier reduce_precision rng_bit_generator"
                         " stable_sort_expander stochastic_convert_decomposer sub_byte_size_setter topk variadic_op_splitter windows",
        "passes/expand/linear_algebra": "cholesky_expander eigh_expander matrices qr_expander triangular_solve_expander",
    },
    "passes/simplify": {
        "passes/simplify": "all_gather_remove_degenerate_dims broadcast_canonicalizer call_graph computation_deduplicator constant_folding"
                           " convert_mover cse dce dots dynamic_dimension_simplifier optimization_barrier_expander reshape_decomposer"
                           " reshape_mover sharding_remover simplify_fp_conversions simplify_sorts slice_sinker transpose_folding"
                           " tuple_simplifier zero_sized",
        "passes/simplify/algebraic": "algebraic_arithmetic algebraic_conversions algebraic_convolutions algebraic_elementwise algebraic_indexing"
                                     " algebraic_movement algebraic_products algebraic_simplifier algebraic_slices algebraic_structure",
        "passes/collectives": "collectives all_gather_bcast_reorder collective_quantizer narrow_collectives loop_collectives",
        "passes/loops": "loops loop_analysis loop_invariant conditional_simplifier while_loop_simplifier while_loops",
    },
    "gpu_exec": {
        "gpu_exec": "executor device_runtime",
        "gpu_exec/emit": "codegen element_complex element_emitter element_math element_movement element_sums element_types kernel kernel_builder gpu_code gpu_kernel"
                         " gpu_kernel_builder gpu_movement gpu_reductions gpu_sort host_kernel",
        "gpu_exec/lower": "host_module lowering matrix_vector row_groups library_calls device_program device_graphs",
        "gpu_exec/devices": "cuda_device emulated host host_memory jit",
        "gpu_exec/driver": "cuda device kernel_cache",
        "gpu_exec/libraries": "cublas_lt cudnn onednn",
    },
    "replay/os": {
        "replay/os": "bounded confined_path files interrupt kept_files output_folder output_marker progress rename temporary terminal",
        "replay/os/process": "spawn program ptxas ahead xla_flags",
    },
    "replay/record": {
        "replay/record/match/match": "match match_impl match_heirs match_metadata match_same match_values",
        "replay/record/recording/recording": "recording recording_json import store store_format store_parts store_read store_write lineage stage_pages"
                                   " bytes check_stage cache",
        "replay/record/logs": "log_file log_times jax_log",
        "replay/record/files": "dump_names file_kind input held_modules run timeline timeline_xspace profiles like_modules",
        "replay/record/importer": "import_graphs import_stages import_xla proto_ids",
        "replay/record/start": "start_stage target wanted_passes made_order",
        "replay/replayer": "replayer",
    },
    "replay/judge": {
        "replay/judge": "judge diverge nan_watch op_cases",
        "replay/judge/arguments": "fit inputs memory own_constants npz elided session",
        "replay/judge/contract/contract": "contract contract_moves contract_parts check check_runs other_bits noise amplified",
    },
    "replay/judge/inside": {
        "replay/judge/inside": "inside stage compare counterparts covered later_trips lockstep partial rewired",
        "replay/judge/values": "canonical numbering orders pair rounding sketch views walk elsewhere stages inputs edges",
    },
    "replay/judge/chosen": {
        "replay/judge/chosen/elements/elements": "device_classes elements elements_run expressions messages products rules sums terms known folded",
        "replay/judge/chosen/operations": "attention moves reductions scatters element_plans element_sums element_devices",
        "replay/judge/chosen/walk": "expression_walk walk_messages walk_trips draws in_order loop_reads turned scattered_parts mask_places",
        "replay/judge/chosen/pair/pair": "pair by_elements pair_alone pair_compare pair_near pair_parts pair_proven pair_sure kept_leaves landings pair_masks pair_rounded"
                                    " unrolled",
    },
    "replay/hunt/inside": {
        "replay/hunt": "annotations",
        "replay/hunt/inside": "search",
    },
    "replay/report": {
        "replay/report/kernels/kernels": "kernels shared_cache expected measured_bounds occupancy thunk_file thunk_timeline ptx_entries emitted_kernels"
                                 " tuned tuned_compare",
        "replay/report/memory": "memory_report buffer_file memory_orders",
        "replay/report/measured/measured": "launches graph_match graph_spans measured measured_devices same_compilation profile step_clock",
        "replay/report/explain/explain": "explain explain_pair explain_text decisions why_made evidence",
        "replay/report/findings/findings": "findings findings_donation findings_instead findings_more findings_parts try_finding tried_findings",
        "replay/report/compile": "compile_log compile_time written_times recompiles",
        "replay/report/overview/overview": "overview first_look summary answers module_findings finding_evidence measured_page",
        "replay/report/levers": "memory_levers scan_residuals recompute",
        "replay/report/what_if/what_if": "batch batch_rules what_if what_if_measured what_if_parts",
    },
    "replay/cli": {
        "replay/cli": "main program command json_output looked_at engine comparison_words kept_arguments captured_shards smaller_words"
                      " xla_arguments other_files measured options options_modules options_runs",
        "replay/cli/bisect": "bisect_elements_report bisect_folder bisect_folder_runs bisect_module bisect_report bisect_smaller bisect_so_far"
                             " cmd_bisect cmd_bisect_xla cmd_isolate cmd_reduce cmd_smaller",
        "replay/cli/triage/triage": "cmd_triage triage triage_answer triage_arguments triage_compile triage_reading triage_report triage_rungs"
                             " triage_runs triage_smallest triage_vmem triage_what jax_script options_triage",
        "replay/cli/run": "cmd_capture cmd_check cmd_compare cmd_exec cmd_installed cmd_opt cmd_program cmd_replay self_test",
        "replay/cli/cost": "cmd_cost cmd_compile_time cmd_measured cmd_memory cmd_profile cmd_recompiles cmd_tuned cmd_whatif measured_run"
                           " measured_times memory_log_words memory_parts memory_try",
        "replay/cli/look": "cmd_diff cmd_explain cmd_lesson cmd_link cmd_log cmd_mcp cmd_open cmd_search cmd_step cmd_summary cmd_view",
        "replay/cli/files": "cmd_cache cmd_convert cmd_other_files cmd_texts excerpts",
    },
    "tests": {
        "tests": "test_main layers_test words_test wheel_symbols_test",
        "tests/common": "command_line json_schema xspace bombs compare cuda_driver random_module pass_cases state_module",
        "tests/ir": "base_test evaluator_test fingerprint_test fuzz_parse lapack_test library_calls_test module_test parse_test source_lines_test"
                    " text_test tpu_test",
        "tests/passes": "agreement_test bench fault_test file_test final_test fusion_cost_test fusion_dump pipeline_test priority_fusion_bench"
                        " random_test schedule_test scope_test steps_test",
        "tests/exec": "cuda_test emitted_test kernels_test ops_test oracle_test ptx_test",
        "tests/record": "ancestors_bench ancestors_test history_test pasted_test record_test run_test",
        "tests/judge": "bisect_smaller_test captured_test check_test chosen_test debugger_test device_elements_test elements_devices_test"
                       " elements_modules elements_named_test elements_proven_test elements_test elided_test inside_test inside_rewired_test sketch_test smaller_test sums_test",
        "tests/report": "batch_test compile_time_test cost_test expected_test findings_test memory_report_test memory_task_test"
                        " profile_graphs_test profile_test recompiles_test tuned_test whatif_test",
        "tests/triage": "installed_test jax_test pasted_complaints_test triage_installed_test triage_test",
        "tests/cli": "answers_test cli_test json_test mcp_test",
        "tests/page": "engine_ask engine_do_test engine_dumps_test engine_fixture engine_made_test engine_test engine_wasm_test layout_bench"
                      " layout_test lessons_run lessons_test",
        "tests/library": "install_test library_test",
        "tests/hostile": "bombs_test hostile_test",
    },
    "tests/dev": {
        "tests/dev": "models models_dump tidy transformer",
        "tests/dev/bench": "bench_bisect bench_exec bench_instructions bench_passes bench_python bench_text",
        "tests/dev/docs": "commands_page coverage demo_page jax_program jax_run lesson_decisions page_pictures snippets",
        "tests/dev/faults": "fuzz_commands fuzz_mutate inside_edits installed_shows live_faults plants plants_unrun sound_dumps triage_faults"
                            " verdicts_alike",
        "tests/dev/figures": "expected_bench expected_table findings_programs findings_shows measured_bounds memory_foretold memory_shows ptx_corpus"
                             " whatif_shows",
        "tests/dev/oracle": "agreement_all cut_calls final_all final_calls final_tuned first_stage fuzz_oracle keep_final keep_pairs lapack_cases"
                            " nested_tuples op_cases oracle_batch oracle_compile oracle_proto same_input thunk_kinds tpu_dumps verify_mutants"
                            " xla_dumps",
        "tests/dev/probes/probes": "probes probes_async probes_block_level probes_gemms probes_ops probes_passes probes_remat probes_rest probes_rules"
                            " probes_softmax",
    },
}
# Files of other kinds that move with what reads them.
BESIDE = {"tests/dev/docs/coverage_notes.md": "tests/dev/docs/coverage_notes.md"}
# From the ground up, where arrows leave a choice.
ORDER = """include/hlo ir/base ir/target ir/types ir ir/query ir/sharding/sharding ir/print/print ir/inference ir/library ir/cost/cost ir/verify
 ir/analysis/fusion ir/analysis/dataflow/dataflow ir/analysis/performance ir/analysis/schedule ir/program ir/eval ir/eval/operations ir/eval/library
 parser parser/excerpt/excerpt parser/proto dump passes passes/pipelines passes/layout passes/loops passes/collectives passes/library_calls
 passes/simplify passes/simplify/algebraic passes/expand passes/expand/linear_algebra passes/backend passes/schedule passes/buffers passes/fusion
 gpu_exec/driver gpu_exec/emit gpu_exec/lower gpu_exec/libraries gpu_exec/devices gpu_exec viewer/layout replay/os replay/os/process
 replay/record/match/match replay/record/recording/recording replay/record/logs replay/record/files replay/record/importer replay/record/start replay/smaller
 replay/compare replay/judge/arguments replay/judge/contract/contract replay/judge/values replay/judge replay/judge/inside
 replay/judge/chosen/elements/elements replay/judge/chosen/operations replay/judge/chosen/walk replay/judge/chosen/pair/pair replay/hunt replay/hunt/inside
 replay/report/kernels/kernels replay/report/memory replay/report/measured/measured replay/report/explain/explain replay/report/findings/findings replay/report/compile
 replay/report/overview/overview replay/report/levers replay/report/what_if/what_if replay/emitted replay/installed replay/mcp viewer/engine viewer
 replay/replayer replay/library replay/cli replay/cli/files replay/cli/look replay/cli/run replay/cli/cost replay/cli/triage/triage
 replay/cli/bisect""".split()


def git(root, *words):
    return subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True, text=True).stdout


def folder(path):
    return path.rpartition("/")[0]


def plan(files, only):
    """(old file: new file, what is wrong)."""
    moves, wrong, notes = {}, [], []
    there = {f.rpartition(".")[0] for f in files}
    for old, rooms in MOVES.items():
        if only and old not in only:
            continue
        room = {}
        for new, stems in rooms.items():
            for stem in stems.split():
                if stem in room:
                    wrong.append(f"{old}/{stem} is in two rows of MOVES")
                room[stem] = new
        here = [f for f in files if folder(f) == old and f.endswith(MOVED)]
        for f in here:
            stem = f[len(old) + 1:].rpartition(".")[0]
            if stem not in room:
                wrong.append(f"{f} is in no row of MOVES")
            elif room[stem] != old:
                moves[f] = room[stem] + f[len(old):]
        gone = set(room) - {f[len(old) + 1:].rpartition(".")[0] for f in here}
        notes += [f"{old}/{stem} is not in this tree" for stem in sorted(gone) if f"{room[stem]}/{stem}" not in there]
    if not only or "tests/dev" in only:
        moves.update({a: b for a, b in BESIDE.items() if a in files})
    taken = set(files) - set(moves)
    wrong += [f"{old}: {new} is there already" for old, new in moves.items() if new in taken]
    return moves, wrong, notes


def renamed(files, moves):
    """Every old name of MOVES: the name of now, of files that an earlier run moved, too."""
    names = dict(moves)
    there = collections.defaultdict(list)
    for f in files:
        there[f.rpartition(".")[0]].append(f)
    for old, rooms in MOVES.items():
        for new, stems in rooms.items():
            for stem in stems.split() if new != old else ():
                for f in there[f"{new}/{stem}"]:
                    before = old + f[len(new):]
                    if before not in files:
                        names[before] = f
    names.update({a: b for a, b in BESIDE.items() if b in files})
    return names


def included(root, files, path, names):
    """Files of ours that `path` includes."""
    for number, line in enumerate((root / path).read_text().splitlines(), 1):
        found = re.match(r'\s*#\s*include "([^"]+)"', line)
        if found:
            for name in (found[1], "include/" + found[1], folder(path) + "/" + found[1], names.get(found[1], "")):
                if name in files:
                    yield number, name
                    break
            else:
                if "/" in found[1]:
                    raise SystemExit(f"{path}:{number}: {found[1]} is not there")


def measure(root, files, moves, names):
    """{(folder, folder): {files}} as it will be, and the number of includes."""
    arrows, count = collections.defaultdict(set), 0
    for path in files:
        if path.endswith((".cc", ".h", ".def", ".inc")) and path.startswith(TOPS):
            for _, name in included(root, files, path, names):
                a, b = folder(moves.get(path, path)), folder(moves.get(name, name))
                count += 1
                if a != b:
                    arrows[a, b].add(moves.get(path, path))
    return arrows, count


def in_order(folders, arrows):
    """Folders from the ground up; None and a circle where there is one."""
    below = {f: {b for a, b in arrows if a == f} for f in folders}
    known = {f: k for k, f in enumerate(ORDER)}
    out, left = [], sorted(folders, key=lambda f: (known.get(f, len(ORDER)), f))
    while left:
        free = next((f for f in left if below[f] <= set(out)), None)
        if free is None:
            return None, left
        out.append(free)
        left.remove(free)
    return out, []


def circles(folders, arrows):
    """Strongly connected sets of folders."""
    below = {f: {b for a, b in arrows if a == f} for f in folders}
    reach = {}
    for f in folders:
        seen, stack = set(), [f]
        while stack:
            for b in below.get(stack.pop(), ()):
                if b not in seen:
                    seen.add(b)
                    stack.append(b)
        reach[f] = seen
    sets = {frozenset(g for g in folders if g in reach[f] and f in reach[g]) for f in folders if f in reach[f]}
    return [sorted(s) for s in sets]


def counts(files, moves):
    out = collections.Counter(folder(moves.get(f, f)) for f in files if f.endswith(COUNTED))
    return {f: n for f, n in out.items() if not f.startswith(("testdata", "docs"))}


def move(root, moves):
    targets = collections.defaultdict(list)
    for old, new in moves.items():
        targets[folder(new)].append(old)
    for new, olds in targets.items():
        (root / new).mkdir(parents=True, exist_ok=True)
        git(root, "mv", *olds, new)


# --- names of files, wherever they are written ---
TOKEN = re.compile(r"(?<![\w-])((?:ir|parser|passes|gpu_exec|replay|viewer|tests)/[\w./-]*\w)(\*?)")
# What is written before a path of ours where the path is not the first word.
BEFORE = re.compile(r"(?:\}|\.\.|\$root\"?|/main|\$PWD)/$")
AS_IT_WAS = ("docs/log/", "viewer/engine/made/", "testdata/", "LICENSE")


def texts(root):
    for name in git(root, "ls-files").splitlines():
        if name.startswith(AS_IT_WAS):
            continue
        try:
            yield name, (root / name).read_text()
        except UnicodeDecodeError:
            pass


def rewrite(root, moves, files):
    """Paths below ROOT in all texts; what it could not decide."""
    left = []
    stems = collections.defaultdict(set)
    for old, new in moves.items():
        stems[old.rpartition(".")[0]].add(new.rpartition(".")[0])
    folders = {folder(f) for f in files} | {folder(folder(f)) for f in files}
    moved_from = set(MOVES)
    here = set(files) | {f.rpartition(".")[0] for f in files}
    for name, text in texts(root):
        def other(found):
            token, star = found.groups()
            before = text[max(0, found.start() - 20):found.start()]
            if before.endswith("/") and not BEFORE.search(before):
                if token in moves:
                    left.append(f"{name}: left as it is: {before}{token}")
                return found[0]
            if name == "tests/CMakeLists.txt" and token.startswith(TOPS) and not before.endswith("/"):
                return found[0]  # from its own folder on: tests_cmake
            if star:
                taken = {folder(new) for old, new in moves.items() if old.startswith(token) and folder(old) == folder(token)}
                kept = [f for f in files if f.startswith(token) and folder(f) == folder(token) and f not in moves]
                if len(taken) == 1 and not kept:
                    return taken.pop() + token[len(folder(token)):] + star
                if taken:
                    left.append(f"{name}: of more than one folder now: {token}*")
                return found[0]
            if token in moves:
                return moves[token]
            if token in stems and token not in folders and len(stems[token]) == 1:
                return next(iter(stems[token]))
            if folder(token) in moved_from and not re.search("[A-Z]{4}", token) and token not in here and not (root / token).exists() \
                    and not (root / folder(name) / token).exists():
                left.append(f"{name}: no file of that name: {token}")
            return found[0]

        new = TOKEN.sub(other, text)
        # In Python: source / "tests" / "page" / "engine_ask.js".
        new = re.sub(r'"tests" / ("dev" / )?"(\w+\.\w+)"', lambda f: parts_of(f, moves), new)
        if new != text:
            (root / name).write_text(new)
    return left


def parts_of(found, moves):
    old = "tests/" + ("dev/" if found[1] else "") + found[2]
    return " / ".join(f'"{word}"' for word in moves[old].split("/")) if old in moves else found[0]


def tests_cmake(root, moves):
    """tests/CMakeLists.txt names files from its own folder on, and tests without an ending."""
    path = root / "tests/CMakeLists.txt"
    text = path.read_text()
    own = {old[6:]: new[6:] for old, new in moves.items() if folder(old) == "tests"}
    text = re.sub(r"(?<![\w/-])(?<!\$\{PROJECT_SOURCE_DIR\}/)(\w+\.(?:cc|py|js))\b", lambda f: own.get(f[1], f[1]), text)
    text = re.sub(r"(?<=\$\{CMAKE_CURRENT_SOURCE_DIR\}/)(\w+\.(?:cc|py|js))\b", lambda f: own.get(f[1], f[1]), text)
    text = re.sub(r"\b(hlo_test|hlo_shards|hlo_program)\((\w+)", lambda f: f"{f[1]}({own.get(f[2] + '.cc', f[2] + '.cc')[:-3]}", text)
    if "cmake_path(GET path FILENAME name)" not in text:
        text = text.replace("function(hlo_program name)\n  target_sources(hlo_tests PRIVATE ${name}.cc)\n",
                            "# hlo_program(PATH): a source without its ending, called by its name.\nfunction(hlo_program path)\n"
                            "  cmake_path(GET path FILENAME name)\n  target_sources(hlo_tests PRIVATE ${path}.cc)\n")
        for kind, words in (("hlo_test", "cost"), ("hlo_shards", "parts cost")):
            text = text.replace(f"function({kind} name {words})\n  hlo_program(${{name}})\n",
                                f"function({kind} path {words})\n  cmake_path(GET path FILENAME name)\n  hlo_program(${{path}})\n")
        text = text.replace("hlo_test(NAME COST LABEL…): one test that runs all of NAME.cc.", "hlo_test(PATH COST LABEL…): one test that runs all of PATH.cc.")
        text = text.replace("hlo_shards(NAME PARTS COST LABEL…)", "hlo_shards(PATH PARTS COST LABEL…)")
    path.write_text(text)


def beside(path, of):
    other = os.path.relpath(path, of)
    return other if other.startswith(".") else "./" + other


def mend(root, moves):
    """Python that finds others by where it is itself."""
    left = []
    shared = {pathlib.PurePosixPath(new).stem for new in moves.values() if folder(new) == "tests/common" and new.endswith(".py")}
    for old, new in moves.items():
        if new.endswith(".js"):
            text = (root / new).read_text()
            text = re.sub(r"(\bfrom '|\bimport '|\brequire\(')(\.\.?/[^']+)(?=')",
                          lambda f: f[1] + beside(os.path.normpath(folder(old) + "/" + f[2]), folder(new)), text)
            (root / new).write_text(text)
        deeper = new.count("/") - old.count("/")
        if not new.endswith(".py") or not deeper:
            continue
        path = root / new
        text = before = path.read_text()
        text = re.sub(r"(__file__\)(?:\.resolve\(\))?|\bHERE)\.parents\[(\d+)\]", lambda f: f"{f[1]}.parents[{int(f[2]) + deeper}]", text)
        text = re.sub(r"((?:__file__\)(?:\.resolve\(\))?|\bHERE)(?:\.parent){2,})\b(?!s)", lambda f: f[1] + ".parent" * deeper, text)
        imports = re.search(rf"^(?:from (?:{'|'.join(shared)}) import|import (?:{'|'.join(shared)})\b)", text, re.M) if shared else None
        if imports and folder(new) != "tests/common":
            lines = ""
            head = text[:imports.start()]
            for module in ("pathlib", "sys"):
                if not re.search(rf"^import (?:\w+, )*{module}\b", head, re.M):
                    lines += f"import {module}\n"
            up = new.count("/") - 1
            gap = "" if head.endswith("\n\n") or lines else "\n"
            insert = f'{gap}sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[{up}] / "common"))\n'
            if lines:  # in order with the others
                first = re.search(r"^(?:import|from) ", head, re.M)
                have = head[first.start():].strip("\n").split("\n") if first else []
                block = sorted([*have, *lines.split()[0:0], *lines.strip().split("\n")], key=lambda line: (line.startswith("from "), line.split()[1]))
                head = (head[:first.start()] if first else head.rstrip("\n") + "\n") + "\n".join(block) + "\n\n"
            text = head + insert + text[imports.start():]
        if text != before:
            path.write_text(text)
        for found in re.finditer(r"(?:__file__\)(?:\.resolve\(\))?|\bHERE)(?:\.parents\[(\d+)\]|((?:\.parent){2,})\b)(?!.* / .common)", text):
            up = int(found[1]) if found[1] else found[2].count(".parent") - 1
            if up + (found[0].startswith("HERE")) not in (new.count("/"), new.count("/") + 1):  # the sources, or what shared/ is beside
                left.append(f"{new}: {found[0]} is not the sources' folder")
    return left


# --- what rules do not reach: (file, as it is after rewrite, as it has to be) ---
COMMON = 'sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))\n'
SPECIALS = [
    ("tests/hostile/folder_cases.py", "from command_line import page_files\n", COMMON + "from command_line import page_files\n"),
    ("tests/browser/view_test.py", 'sys.path.insert(0, str(SOURCE / "tests"))', 'sys.path.insert(0, str(SOURCE / "tests/common"))'),
    ("tests/browser/view_test.py", 'os.path.join(SOURCE, "tests/dev")', 'os.path.join(SOURCE, "tests/dev/docs")'),
    ("tests/page/engine_wasm_test.py", 'sys.path.insert(0, str(source / "tests"))', 'sys.path.insert(0, str(source / "tests" / "common"))'),
    ("tests/words_test.py", 'pathlib.Path(__file__).parent / "dev"))', 'pathlib.Path(__file__).parent / "dev" / "docs"))'),
    ("tests/dev/faults/fuzz_commands.py", 'ROOT / "tests" / "dev"))', 'ROOT / "tests" / "dev" / "faults"))'),
    ("tests/gpu/bundle.sh", "tests/dev/{final_calls,cut_calls}.py", "tests/dev/oracle/{final_calls,cut_calls}.py"),
    # Other headers stood before it and had <optional>; in the order of now none does.
    ("passes/collectives/collectives.h", '#pragma once\n#include "ir/module.h"', '#pragma once\n#include <optional>\n\n#include "ir/module.h"'),
    # A list in a comment, which clang-format would run together where a line is too long.
    ("replay/judge/contract/check.h", "(replay/judge/contract/noise.h)", "(noise.h)"),
    ("replay/judge/contract/check.h", "leaves open (replay/judge/contract/contract.h)", "leaves open (contract.h)"),
    ("docs/HACKING.md", "`ir/analysis/` (`fusibility`, `gpu_cost_analysis`, `gpu_performance_model`, `launch`, `tiling`)",
     "`ir/analysis/performance/` (`fusibility`, `gpu_cost_analysis`, `gpu_performance_model`), `ir/analysis/fusion/` (`launch`, `tiling`)"),
    ("docs/HACKING.md", "`replay/cli/cmd_NAME.cc` with its options", "`replay/cli/TASK/cmd_NAME.cc` with its options"),
    ("docs/HACKING.md", "`gpu_exec/emit/gpu_kernel.cc`, `host_kernel.cc`, `library_calls.cc`",
     "`gpu_exec/emit/gpu_kernel.cc`, `host_kernel.cc`, `gpu_exec/lower/library_calls.cc`"),
    ("docs/HACKING.md", "`cmd_convert` in `replay/cli/main.cc` for the way out", "`replay/cli/files/cmd_convert.cc` for the way out"),
    ("docs/HACKING.md", "`tests/layers_test.py` holds which folder may include which.",
     "`tests/layers_test.py` holds which folder may include which, and that no folder has over 30 files: a new folder is a row there."),
    ("docs/architecture.md", "Analyses, each in one place (`ir/analysis/`), in XLA's shape:", "Analyses, each in one place (below `ir/analysis/`), in XLA's shape:"),
    ("docs/architecture.md", "| `points_to` |", "| `dataflow/points_to` |"),
    ("docs/architecture.md", "| `dataflow` |", "| `dataflow/dataflow` |"),
    ("docs/architecture.md", "| `alias_info` |", "| `dataflow/alias_info` |"),
    ("docs/architecture.md", "| `buffers` |", "| `dataflow/buffers` |"),
    ("docs/architecture.md", "| `ordering` |", "| `dataflow/ordering` |"),
    ("docs/architecture.md", "| `fusion_view`, `fusion_analysis`, `fusibility` |", "| `fusion/fusion_view`, `fusion/fusion_analysis`, `performance/fusibility` |"),
    ("docs/architecture.md", "| `gpu_cost_analysis`, `gpu_performance_model`, `launch`, `reduction`, `tiling` |",
     "| `performance/gpu_cost_analysis`, `performance/gpu_performance_model`, `fusion/launch`, `fusion/reduction`, `fusion/tiling` |"),
    ("docs/architecture.md",
     "Folders from the ground up, each including only those before it (`tests/layers_test.py`): `ir/base`, `ir`, `ir/eval`, `parser`, `dump`, `passes`, `gpu_exec`, of `replay` `os` (files, processes, terminal), `record` (recordings, runs, what a file is), `compare` (diff, match, link), `judge` (results, contracts, inside), `hunt` (bisect, reduce, extract) next to `report` (first look, cost, findings, explain), `installed`, `mcp`, then `viewer`, and side by side `replay/library` (below `include/hlo/`, [library.md](library.md)) and `replay/cli`. ",
     "Folders from the ground up, each including only those before it; `tests/layers_test.py` has a row of each with all that it includes, and no folder has over 30 files:\n\n"
     "| folder | what is in it |\n| --- | --- |\n"
     "| `ir/base`, `ir/target`, `ir/types` | checked sizes, interners, threads; GPUs; element types, shapes, literals |\n"
     "| `ir` | the module, its universe and snapshots |\n"
     "| `ir/query`, `sharding`, `print`, `inference`, `library`, `cost`, `verify` | what is asked of a module, shardings and aliases, text, shapes of results, library calls, cost, the verifier |\n"
     "| `ir/analysis/fusion`, `dataflow`, `performance`, `schedule` | the analyses above |\n"
     "| `ir/program`, `ir/eval` | buffer assignment and thunks as data; the evaluator, with `operations` and `library` calls |\n"
     "| `parser`, `parser/excerpt/excerpt`, `parser/proto`, `dump` | texts, texts as people paste them, protos; writers |\n"
     "| `passes` | the table, scope and rewrites; `pipelines`, then passes by subject: `layout`, `loops`, `collectives`, `library_calls`, `simplify`, `expand`, `backend`, `schedule`, `buffers`, `fusion` |\n"
     "| `gpu_exec/driver`, `emit`, `lower`, `libraries`, `devices`, `gpu_exec` | the driver, LLVM IR, programs for devices, cuBLAS and others, devices, executors |\n"
     "| `replay/os`, `replay/os/process` | files, terminal, processes |\n"
     "| `replay/record/match/match`, `recording`, `logs`, `files`, `importer`, `start` | which instruction is which, recordings and their store, logs, what a file is, XLA's dumps, where a replay starts |\n"
     "| `replay/smaller`, `replay/compare` | small arrays; diff, match, link |\n"
     "| `replay/judge/arguments`, `contract`, `values`, `judge`, `inside`, `chosen/*` | inputs and sessions, contracts, values by number, results, stage against stage, chosen elements |\n"
     "| `replay/hunt`, `replay/hunt/inside` | bisect, reduce, extract |\n"
     "| `replay/report/memory`, `kernels`, `measured`, `explain`, `findings`, `compile`, `overview`, `levers`, `what_if` | reports by subject |\n"
     "| `replay/emitted`, `installed`, `mcp` | XLA's own kernels, an installed XLA, the protocol |\n"
     "| `viewer/layout`, `viewer/engine`, `viewer`, `replay/replayer` | drawings, the page's answers, pages, and what runs a pipeline and writes its stages |\n"
     "| `replay/library`, `replay/cli` | side by side: the library (below `include/hlo/`, [library.md](library.md)) and the commands by task |\n\n"
     ),
]


def specials(root):
    left = []
    for name, old, new in SPECIALS:
        path = root / name
        text = path.read_text() if path.exists() else ""
        if new in text:
            continue
        if old in text:
            path.write_text(text.replace(old, new))
        else:
            left.append(f"{name}: not found: {old[:100]}")
    return left


# --- tests/layers_test.py ---
HEAD = '''"""Which folder may include which: the table below, nothing else; and no folder has over 30 files.

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
'''
TAIL = '''LAYERS = list(ALLOWED)


def layer_of(path):
    return path.rpartition("/")[0]


def page_circles(root):
'''
MAIN = '''def crowded(root):
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
        for other in re.findall(r\'^\\s*#include "(tests/[^"]+)"\', path.read_text(), re.M):
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
            found = re.match(r\'\\s*#include "([^"]+)"\', line)
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
    print("\\n".join(wrong + [f"{includes} includes, {len(seen)} arrows between {len(LAYERS)} folders, {sum(map(len, BREACHES.values()))} files with known breaches"]))
    print(f"{includes - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong or includes < 500 else 0


sys.exit(main())
'''
WHY = {
    ("dump", "parser"): "Attributes are kept as texts and parsed again to be written.",
    ("gpu_exec", "passes"): "The lowering to device programs runs passes of its own.",
}
# Over a row.
SAID = {
    "include/hlo": "What users include has nothing of ours.",
    "viewer/engine": "What the page is answered by: all that needs no device, and nothing of gpu_exec.",
}


def wrapped(first, words, width=150):
    """`first` and a string literal of all words, in lines."""
    if not words:
        return [first + '"",']
    lines, line = [], ""
    for word in words:
        if line and len(first) + len(line) + len(word) + 4 > width:
            lines.append(line)
            line = ""
        line += (" " if line else "") + word
    lines.append(line)
    pad = " " * len(first)
    return [(first if k == 0 else pad) + f'"{" " if k else ""}{line}"' + ("," if k == len(lines) - 1 else "") for k, line in enumerate(lines)]


def write_layers(root, order, arrows):
    """The table as it is measured."""
    path = root / "tests/layers_test.py"
    old = path.read_text()
    page = old[old.index("def page_circles(root):\n") + len("def page_circles(root):\n"):old.index("def main():")]
    if "\ndef crowded" in page:
        page = page[:page.index("def crowded")]
    place = {f: k for k, f in enumerate(order)}
    breach = {}
    for (a, b), files in arrows.items():
        if any((a + "/").startswith(x + "/") and (b + "/").startswith(y + "/") for x, y in WHY):
            breach[a, b] = files
    lines = []
    for f in order:
        if f in SAID:
            lines.append(f"    # {SAID[f]}")
        lines += wrapped(f'    "{f}": ', sorted((b for a, b in arrows if a == f and (a, b) not in breach), key=place.get))
    lines += ["}", "# (from, to): files that still do it. A file that no longer does must leave its row.", "BREACHES = {"]
    said = None
    for (a, b), files in sorted(breach.items()):
        why = next(text for (x, y), text in WHY.items() if (a + "/").startswith(x + "/") and (b + "/").startswith(y + "/"))
        if why != said:
            lines.append(f"    # {why}")
            said = why
        names = [f'"{n}"' for n in sorted(files)]
        rows, row = [], ""
        for n in names:
            if row and len(row) + len(n) > 110:
                rows.append(row + ",")
                row = ""
            row += (", " if row else "") + n
        rows.append(row)
        first = f'    ("{a}", "{b}"): {{'
        lines += [(first if k == 0 else " " * len(first)) + row + ("}," if k == len(rows) - 1 else "") for k, row in enumerate(rows)]
    lines.append("}")
    path.write_text(HEAD + "\n".join(lines) + "\n" + TAIL + page + MAIN)


def formatted(root):
    """Includes in order again, lines of at most 120 columns."""
    left = []
    changed = [f for f in git(root, "diff", "HEAD", "--name-only", "--diff-filter=d").splitlines() if f.endswith((".cc", ".h"))]
    for f in changed:
        for number, line in enumerate((root / f).read_text().splitlines(), 1):
            if len(line) > 120 and re.match(r"\s*//   ?\s*\S", line) and not re.match(r"\s*// \S", line):
                left.append(f"{f}:{number}: a list in a comment, over 120 columns: {line[:80]}")
    for k in range(0, len(changed), 100):
        subprocess.run(["clang-format", "-i", *(str(root / f) for f in changed[k:k + 100])], check=True)
    return left


# --- does all lead somewhere? ---
def resolve(root):
    left = []
    files = set(git(root, "ls-files").splitlines())
    measure(root, files, {}, {})  # ends where an include of ours is not there
    listed = set()
    for name in sorted(f for f in files if f.endswith((".cc", ".h")) and f.startswith(("tests/", "python/"))):
        for found in re.finditer(r'^\s*#\s*include "([^"]+)"', (root / name).read_text(), re.M):
            if not any(x in files for x in (found[1], "include/" + found[1], folder(name) + "/" + found[1])):
                left.append(f"{name}: no {found[1]}")
    for name in sorted(f for f in files if f.endswith(("CMakeLists.txt", ".cmake"))):
        text = re.sub(r"#[^\n]*", "", (root / name).read_text())
        for found in re.finditer(r"(?<![\w${}/.-])((?:\$\{(?:PROJECT|CMAKE_CURRENT)_SOURCE_DIR\}/)?[\w-][\w./-]*\.(?:cc|h|def|py|js|ts|cmake|proto|map))(?![\w.*])", text):
            word = found[1]
            if word.startswith("${PROJECT"):
                tries = [word.split("}/")[1]]
            elif word.startswith("${CMAKE"):
                tries = [folder(name) + "/" + word.split("}/")[1] if folder(name) else word.split("}/")[1]]
            else:
                tries = [word, (folder(name) + "/" if folder(name) else "") + word]
            hit = next((t for t in tries if t in files), None)
            if hit:
                listed.add(hit)
            elif not re.match(r"codemirror/|gtest/|(page|worker|main)\.[jt]s", word):  # of others, or made by the build
                left.append(f"{name}: no file {word}")
        if name == "tests/CMakeLists.txt":
            for found in re.finditer(r"hlo_(?:test|shards|program)\(([\w/]+)", text):
                if found[1] not in ("name", "path"):
                    if f"tests/{found[1]}.cc" in files:
                        listed.add(f"tests/{found[1]}.cc")
                    else:
                        left.append(f"{name}: no file {found[1]}.cc")
    left += [f"{f} is in no list of CMake" for f in sorted(files) if f.endswith(".cc") and f not in listed and not f.startswith(("python/", "docs/", "viewer/engine/", "testdata/"))]
    for name in sorted(f for f in files if f.endswith(".js") and f.startswith("tests/")):
        for found in re.findall(r"(?:from|import|require\() ?'(\.\.?/[^']+)'", (root / name).read_text()):
            path = os.path.normpath(folder(name) + "/" + found)
            if not {path, path + ".js", path + ".ts"} & files:
                left.append(f"{name}: no {found}")
    left += imports(root, files)
    return left


def imports(root, files):
    """Python of the tests that imports a module of ours from where it is not looked for."""
    import ast
    left, where = [], collections.defaultdict(set)
    for f in files:
        if f.endswith(".py") and f.startswith(("tests/", "python/")):
            where[pathlib.PurePosixPath(f).stem].add(folder(f))
    for f in sorted(f for f in files if f.endswith(".py") and f.startswith("tests/") and "/programs/" not in f and not f.startswith("tests/python/")):
        text = (root / f).read_text()
        tree = ast.parse(text)
        looked = {folder(f)}
        for line in re.findall(r"sys\.path[^\n]*", text):
            words = [w for w in re.findall(r'"([^"]*)"', line)]
            looked |= {d for d in {folder(x) for x in files} if words and d.endswith("/".join(words))}
        if f.startswith("tests/hostile/"):  # hostile_test.py has its folder looked in
            looked.add("tests/hostile")
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
            for module in names:
                if module in where and module not in sys.stdlib_module_names and not where[module] & looked:
                    left.append(f"{f}:{node.lineno}: {module} is in {sorted(where[module])}, looked for in {sorted(looked)}")
    return left


def main():
    root = pathlib.Path(next(a for a in sys.argv[1:] if not a.startswith("--"))).resolve()
    only = next((set(a[7:].split(",")) for a in sys.argv if a.startswith("--only=")), set())
    files = git(root, "ls-files").splitlines()
    known = set(files)
    moves, wrong, notes = plan(files, only)
    names = renamed(known, moves)
    arrows, includes = measure(root, known, moves, names)
    folders = {folder(moves.get(f, f)) for f in files if f.endswith((".cc", ".h", ".def")) and f.startswith(TOPS)}
    order, _ = in_order(folders, arrows)
    sizes = counts(files, moves)
    if not only:
        wrong += [f"{f} has {n} files" for f, n in sorted(sizes.items()) if n > MOST]
        for circle in circles(folders, arrows):
            wrong.append("a circle: " + " ".join(circle))
            for a, b in sorted(arrows):
                if a in circle and b in circle:
                    wrong.append(f"   {a} → {b} ({len(arrows[a, b])}): {', '.join(sorted(arrows[a, b])[:6])}")
        wrong += [f"{f} is not in ORDER" for f in sorted(folders - set(ORDER))]
    if "--dry" in sys.argv:
        for old, rooms in MOVES.items():
            print(f"{old}: " + ", ".join(f"{new} {sizes.get(new, 0)}" for new in rooms))
        if order:
            place = {f: k for k, f in enumerate(order)}
            for f in order:
                print(f"{f} ({sizes.get(f, 0)}) → " + " ".join(f"{b}:{len(arrows[f, b])}" for b in sorted((b for a, b in arrows if a == f), key=place.get)))
    print("\n".join(notes + wrong + [""] if notes or wrong else []), end="")
    print(f"{len(moves)} files to move, {len(folders)} folders of C++, {len(arrows)} arrows, {includes} includes, {len(wrong)} wrong")
    if wrong or "--dry" in sys.argv:
        return 1 if wrong else 0
    if git(root, "status", "--porcelain", "--untracked-files=no"):
        print("there is something uncommitted")
        return 1
    move(root, moves)
    left = rewrite(root, names, files)
    left += mend(root, moves)
    tests_cmake(root, names)
    if not only:
        left += specials(root)
        write_layers(root, order, arrows)
    left += formatted(root)
    left += resolve(root)
    print("".join(line + "\n" for line in left), end="")
    print(f"{len(left)} things to look at")
    return 0


if __name__ == "__main__":
    sys.exit(main())
