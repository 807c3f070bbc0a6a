#!/bin/bash
# Everything that needs a card, in one command that builds nothing: operation tests, kernels, modules against the
# evaluator, times (beside jax where the machine has it), and a table for docs/GPU.md.
#   tests/gpu/run.sh [OUT]         from a bundle (tests/gpu/bundle.sh) or from a checkout that is built
# HLO_CUDA_DRIVER names another driver: with build/tests/libfake_cuda.so it is a rehearsal, on small modules only.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ -x "$here/bin/hlo-replay" ]; then
  root=$here modules="$here/modules" data="$here/testdata"
  export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" HLO_LIBDEVICE="$here/lib/libdevice.10.bc"
  tool=("$here/bin/hlo-replay")
  # An older libc than the bundle's: with its own loader.
  "${tool[@]}" --version >/dev/null 2>&1 || tool=("$here/lib/ld-linux-x86-64.so.2" --library-path "$LD_LIBRARY_PATH" "$here/bin/hlo-replay")
  tests() { (cd "$root" && "${tool[@]}" --run-tests "$@"); }
else
  root=$(cd "$here/../.." && pwd) modules="$root/../shared/corpus" data="$root/testdata"
  tool=("${HLO_TOOL:-$root/build/bin/hlo-replay}")
  built=$(cd "$(dirname "${tool[0]}")/../tests" && pwd)
  tests() { "$built/ops_test" "$@" && "$built/kernels_test" "$@"; }
fi
# CUDA's libraries, wherever the machine keeps them: in a toolkit, or beside jax as wheels.
if [ -z "${HLO_CUDA_DRIVER:-}" ]; then
  wheels=$(python3 -c 'import glob, sys; print("\n".join(d for p in sys.path for d in glob.glob(p + "/nvidia/*/lib")))' 2>/dev/null || true)
  for folder in $wheels /usr/local/cuda/lib64; do
    [ -d "$folder" ] && export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder"
  done
fi
out=${1:-${OUT:-$PWD/gpu-results}}
mkdir -p "$out" || exit 2
table=$out/gpu.md
probe=$("${tool[@]}" exec "$data/add.hlo" --backend=cuda 2>&1)
if [ $? -ne 0 ]; then
  echo "no card can be used: $probe" | tee "$out/skipped.txt"
  exit 0
fi
card=$(echo "$probe" | sed -n 's/.* kernels on \(.*([a-z0-9_]*)\).*/\1/p' | head -1)
rehearsal=no
case $card in *interpreter*) rehearsal=yes ;; esac
failed=0
# A rehearsal tries this script; ops_test and kernels_test run in full on the same driver as tests of their own.
filter='*Cuda*:Kernels.*' repeat=20
[ $rehearsal = yes ] && filter='Kernels.StableSortsAsTheyAre:Kernels.CodeForEveryArchitecture' repeat=2

echo "== operations and kernels on $card"
if tests --gtest_filter="$filter" >"$out/tests.txt" 2>&1; then
  verdict="all passed"
else
  verdict="FAILED" failed=1
fi
grep -E '^\[ +(OK|FAILED) ' "$out/tests.txt" | sort -u
echo "   $verdict"

{
  echo "# On a card"
  echo
  echo "$card, $(date -u +%F), by \`tests/gpu/run.sh\`. Operation and kernel tests: $verdict. Seconds are the best of $repeat runs, inputs and results on the card; *left* counts instructions that ran in the evaluator."
  echo
  echo "| module | against the evaluator | seconds | compiling | left | jax | ratio |"
  echo "| --- | --- | --- | --- | --- | --- | --- |"
} >"$table"

python=$(command -v python3 || true)
jax=no
if [ -n "$python" ] && "$python" -c 'import jax; assert jax.default_backend() == "gpu"' 2>/dev/null; then jax=yes; fi
[ $jax = yes ] || echo "jax: there is none that uses this card, its column stays empty"

count=0
list=("$data"/mobilenet_v1.hlo "$data"/gpu/*.hlo "$data"/kernels/*.hlo)
small=400000
[ $rehearsal = yes ] && list=("$data"/kernels/*.hlo "$data"/gpu/{small_*,loops,lanes,branches,devices,accumulate,vector_products}.hlo) && small=0
for m in "$modules"/*.hlo "$modules"/*.hlo.txt; do
  [ -f "$m" ] && [ $small -gt 0 ] && list+=("$m")
done
for m in "${list[@]}"; do
  [ -f "$m" ] || continue
  name=$(basename "$m")
  name=${name%.hlo.txt} name=${name%.hlo}
  scheme=mixed
  case $name in *train*) scheme=positive ;; esac
  text=$(timeout -s KILL 300 "${tool[@]}" exec "$m" --backend=cuda --scheme=$scheme --repeat=$repeat --compare-with=evaluator 2>&1)
  code=$?
  verdict=$(echo "$text" | tail -1 | cut -c1-140)
  line=$(echo "$text" | grep ': cuda in ' | head -1)
  seconds=$(echo "$line" | sed -n 's/.*: cuda in \([0-9.e-]*\) s.*/\1/p')
  compile=$(echo "$line" | sed -n 's/.*compiled in \([0-9.e-]*\) s.*/\1/p')
  left=$(echo "$text" | grep -c 'runs in the evaluator')
  other=""
  ratio=""
  if [ $jax = yes ] && [ -n "$seconds" ]; then
    other=$(timeout -s KILL 300 "$python" "$here/time_jax.py" "$m" 2>/dev/null | tail -1)
    [ -n "$other" ] && ratio=$(awk "BEGIN { printf \"%.2f\", $seconds / $other }")
  fi
  case $code in
    0) count=$((count + 1)) ;;
    1) failed=1 ;;
    *) verdict="not run: $(echo "$text" | grep -m1 'error:' | cut -c1-120)" ;;
  esac
  echo "   $name: $verdict ${seconds:+in $seconds s}"
  echo "| $name | ${verdict//|/\\|} | $seconds | $compile | $left | $other | $ratio |" >>"$table"
done

# Where the time goes, of one module.
profiled=$data/mobilenet_v1.hlo
[ $rehearsal = yes ] && profiled=$data/kernels/reductions.hlo
"${tool[@]}" exec "$profiled" --backend=cuda --profile="$out/profile.json" --force >"$out/profile.txt" 2>&1 || failed=1
{
  echo
  echo "$count modules equal the evaluator's results. Where the time of $(basename "$profiled") goes:"
  echo
  echo '```'
  grep -A12 'Time(%)\|time' "$out/profile.txt" | head -14
  echo '```'
  [ $jax = yes ] || echo "There was no jax on this card to compare with."
} >>"$table"
echo "== $count modules equal; the table is $table"
exit $failed
