#!/usr/bin/env bash
# Everything that CI checks: format, build, tests, tests under sanitizers, clang-tidy. tests/dev/check.sh [--quick]
set -euo pipefail
cd "$(dirname "$0")/../.."
bash tests/dev/setup.sh
sources=$(git ls-files '*.cc' '*.h')
echo "== clang-format"
clang-format --dry-run -Werror $sources
# The reference compiler judges printing and results where it can be installed.
if [ -x ../shared/oracle/setup.sh ]; then
  bash ../shared/oracle/setup.sh >/dev/null || echo "the reference compiler could not be installed: oracle_test will be skipped"
fi
echo "== build"
cmake -S . -B build -G Ninja -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null
cmake --build build
if [ "${1:-}" != --quick ]; then
  echo "== sanitizers"
  cmake -S . -B build-asan -G Ninja -DHLO_SANITIZE=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo >/dev/null
  cmake --build build-asan
  # Graphviz keeps what it allocated; leaks of ours show in the other tests.
  ASAN_OPTIONS=detect_leaks=0 ctest --test-dir build-asan --output-on-failure -j2 -E oracle_test
  echo "== clang-tidy"
  printf '%s\n' $sources | grep '\.cc$' | grep -v '^tests/' | xargs -P2 -n4 clang-tidy -p build --quiet 2>/dev/null
fi
echo "== tests"
ctest --test-dir build --output-on-failure -j2
