#!/usr/bin/env bash
# Installs what is missing, builds the command, and replays a module: tests/dev/build.sh [MODULE [FOLDER]]
# The tests are built by tests/dev/check.sh, or by `tests/dev/setup.sh tests` and `cmake --build build`.
set -euo pipefail
cd "$(dirname "$0")/../.."
bash tests/dev/setup.sh
cmake -S . -B build -G Ninja -DHLO_UNITY=ON -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null
cmake --build build --target hlo-replay
[ $# -ge 1 ] || exit 0
build/bin/hlo-replay replay "$1" -o "${2:-out}" --force
