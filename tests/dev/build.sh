#!/usr/bin/env bash
# Installs what is missing, builds, and replays a module: tests/dev/build.sh [MODULE [FOLDER]]
set -euo pipefail
cd "$(dirname "$0")/../.."
bash tests/dev/setup.sh
cmake -S . -B build -G Ninja -DHLO_UNITY=ON -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null
cmake --build build
[ $# -ge 1 ] || exit 0
build/bin/hlo-replay replay "$1" -o "${2:-out}" --force
