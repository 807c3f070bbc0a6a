#!/usr/bin/env bash
# The longer judges, which do not fit into the check: tests/dev/full.sh [PART…]   (all parts when none is named)
#   engine   the page's engine compiled anew, byte by byte the one in the sources; all of engine_wasm_test with it
#   wheel    builds the wheel (python/build_wheel.py)
#   chroot   the wheel in a bare Debian 12 (tests/dev/chroot.sh; root)
#   tried    the wheel's first answer on Debian 11, 12, 13 and testing (tests/dev/wheel_tried.sh; root)
#   notebook docs/notebooks executed with the wheel, and as pages in build/notebooks (tests/dev/notebooks.sh)
#   fuzz     mutants over every command and format (tests/dev/faults/fuzz_commands.py; HLO_FUZZ_RUNS, HLO_FUZZ_SEED)
#   random   modules by chance through every pass, both pipelines and the host's kernels (HLO_RANDOM of them)
#   docs     docs/ as pages, links checked (tests/dev/docs.sh), every command in them run (tests/dev/docs/snippets.py), a real jax run (jax_run.py)
#   tidy     clang-tidy over every batch; where all are clean, tests/dev/tidy_base.txt names this commit
#   sanitize the tests under all of the sanitizers' checks, pointers' nullness, alignment and types, too (build-asan-all)
#   oracle   mutants of texts, judged by XLA's parser and ours (where the reference can be installed)
# Every part runs, whatever the others say; minutes per part at the end, and the line for docs/PROGRESS.md.
set -uo pipefail
cd "$(dirname "$0")/../.."
all=(engine wheel chroot tried notebook fuzz random docs tidy sanitize oracle)
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=("${all[@]}")
for part in "${parts[@]}"; do
  [[ " ${all[*]} " == *" $part "* ]] || { echo "error: no part '$part'; parts are: ${all[*]}" >&2; exit 2; }
done
tool=build/bin/hlo-replay

ordinary() { # targets…
  bash tests/dev/setup.sh tests && { [ -f build/build.ninja ] || cmake -S . -B build -G Ninja -DHLO_UNITY=ON -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null; } &&
    cmake --build build --target "$@"
}
part_engine() {
  bash tests/dev/engine_made.sh --compare && bash tests/dev/setup.sh browser && ordinary hlo-replay engine_ask &&
    python3 tests/page/engine_wasm_test.py build/tests/engine_ask build-engine-again/engine . same hostile values all
}
part_wheel() { nice python3 python/build_wheel.py; }
with_wheel() { # SCRIPT WHEEL, which is built where there is none
  local wheel
  wheel=$(ls -t build-wheel/dist/*_"$(uname -m)".whl 2>/dev/null | head -1)
  if [ -z "$wheel" ]; then
    part_wheel || return 1
    wheel=$(ls -t build-wheel/dist/*_"$(uname -m)".whl | head -1)
  fi
  bash "$1" "$wheel"
}
part_chroot() { with_wheel tests/dev/chroot.sh; }
part_tried() { with_wheel tests/dev/wheel_tried.sh; }
part_notebook() { with_wheel tests/dev/notebooks.sh; }
part_fuzz() {
  ordinary hlo-replay &&
    python3 tests/dev/faults/fuzz_commands.py "$tool" --runs="${HLO_FUZZ_RUNS:-3000}" --seed="${HLO_FUZZ_SEED:-1}" --keep=build/fuzz
}
part_random() {
  ordinary random_test kernels_test &&
    HLO_RANDOM=${HLO_RANDOM:-10000} build/tests/random_test &&
    HLO_RANDOM=$((${HLO_RANDOM:-10000} / 20)) build/tests/kernels_test --gtest_filter='*andom*'
}
part_docs() {
  bash tests/dev/docs.sh && ordinary hlo-replay || return 1
  local python=""
  [ -x ../shared/oracle/setup.sh ] && python=$(bash ../shared/oracle/setup.sh | tail -1)
  if [ -z "$python" ]; then # snippets that need a dump are left out
    python3 tests/dev/docs/snippets.py "$tool"
    return
  fi
  python3 tests/dev/docs/snippets.py "$tool" --python="$python" && nice python3 tests/dev/docs/jax_run.py "$python" "$tool"
}
part_tidy() { ordinary all && python3 tests/dev/tidy.py build --all; }
part_sanitize() {
  cmake -S . -B build-asan-all -G Ninja -DHLO_UNITY=ON -DHLO_SANITIZE=ALL >/dev/null && cmake --build build-asan-all &&
    ASAN_OPTIONS=detect_leaks=0 ctest --test-dir build-asan-all -L asan --output-on-failure --no-tests=error -j2
}
part_oracle() {
  [ -x ../shared/oracle/setup.sh ] || { echo "skipped: the reference compiler is not here"; return 0; }
  local python
  python=$(bash ../shared/oracle/setup.sh | tail -1) || { echo "skipped: the reference compiler could not be installed"; return 0; }
  ordinary hlo-replay && python3 tests/dev/oracle/fuzz_oracle.py "$tool" testdata/*.hlo --python="$python" --count=3000
}

table=() line="" failed=0
for part in "${parts[@]}"; do
  echo "== $part"
  start=$SECONDS
  if "part_$part"; then said=passed; else said=FAILED failed=1; fi
  minutes=$(awk -v s=$((SECONDS - start)) 'BEGIN { printf "%.1f", s / 60 }')
  table+=("$(printf '%-8s %-7s %6s min' "$part" "$said" "$minutes")")
  line+="${line:+, }$part $said ($minutes min)"
done
echo "== summary"
printf '%s\n' "${table[@]}"
echo "for docs/PROGRESS.md: Longer judges, last run $(date +%Y-%m-%d) at $(git rev-parse --short HEAD 2>/dev/null || echo '?'): $line."
exit $failed
