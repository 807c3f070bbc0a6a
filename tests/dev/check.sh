#!/usr/bin/env bash
# Everything that CI checks: format, build, tests under sanitizers, clang-tidy, tests. tests/dev/check.sh [--quick]
# --quick: format, build and tests of the plain tree. What runs where: docs/HACKING.md. Ends itself after 75 minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."
limit_s=4500
if [ -z "${HLO_CHECK_LIMITED:-}" ]; then
  HLO_CHECK_LIMITED=1 timeout --foreground --kill-after=30 $limit_s bash "tests/dev/$(basename "$0")" "$@" && exit 0 || code=$?
  [ $code -ne 124 ] || echo "== the check took longer than $((limit_s / 60)) minutes: that is a failure of its own"
  exit $code
fi
started=$SECONDS part_started=$SECONDS part= times=
begin() {  # ends the part before
  [ -z "$part" ] || times+=$(printf '%6d:%02d  %s' $(((SECONDS - part_started) / 60)) $(((SECONDS - part_started) % 60)) "$part")$'\n'
  part=${1:-} part_started=$SECONDS
  [ -z "$part" ] || echo "== $part ($(df -h --output=avail . | tail -1 | tr -d ' ') of disk left)"
}
mkdir -p build
slowest=build/slowest-tests.txt
: >$slowest
tests() {  # TREE LABEL: the tests with that label, the longest first
  ctest --test-dir "$1" -L "$2" --output-on-failure --no-tests=error -j2 | tee build/ctest.log
  sed -nE "s|^ *[0-9]+/[0-9]+ Test +#[0-9]+: ([^ ]+) .* ([0-9.]+) sec.*|\2 s  \1 ($1)|p" build/ctest.log >>$slowest
}

begin setup
bash tests/dev/setup.sh tests python browser
# The reference compiler judges printing and results where it can be installed: downloaded while the processors build.
oracle=
if [ -x ../shared/oracle/setup.sh ]; then
  bash ../shared/oracle/setup.sh >/dev/null &
  oracle=$!
fi
begin clang-format
sources=$(git ls-files '*.cc' '*.h')
clang-format --dry-run -Werror $sources
begin "the page's TypeScript"
(cd viewer/page && for what in "fmt --check" lint; do NO_COLOR=1 DENO_NO_UPDATE_CHECK=1 ../../build/venv/bin/deno $what --quiet; done)
begin build
cmake -S . -B build -G Ninja -DHLO_UNITY=ON -DHLO_LINES=OFF -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DHLO_PYTHON=ON -DHLO_ENGINE=OFF -DPython_EXECUTABLE="$PWD/build/venv/bin/python" >/dev/null
cmake --build build
if [ "${1:-}" != --quick ]; then
  begin "build with sanitizers"
  cmake -S . -B build-asan -G Ninja -DHLO_UNITY=ON -DHLO_LINES=OFF -DHLO_SANITIZE=ON >/dev/null
  cmake --build build-asan
  begin "tests under sanitizers"
  # Graphviz keeps what it allocated; leaks of ours show in the other tests.
  ASAN_OPTIONS=detect_leaks=0 tests build-asan asan
  begin clang-tidy
  # What changed since the whole tree was clean; all of it: tests/dev/full.sh tidy.
  python3 tests/dev/tidy.py build
fi
[ -z "$oracle" ] || wait "$oracle" || echo "the reference compiler could not be installed: oracle_test will be skipped"
begin tests
tests build plain
begin
echo "== minutes"
printf '%s%6d:%02d  in all\n' "$times" $(((SECONDS - started) / 60)) $(((SECONDS - started) % 60))
echo "== the ten slowest tests"
# One reader of all of it: `head` ends first, and `sort` dies of the closed pipe (exit 141).
sort -rn $slowest | sed -n 1,10p
