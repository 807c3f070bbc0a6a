#!/usr/bin/env bash
# The aarch64 wheel's command under qemu-user: tests/dev/wheel_aarch64.sh WHEEL
# Debian 11's glibc for that machine (python/wheel_parts.py has it) and libgcc; no Python, no processes of its own, which
# would need binfmt_misc. Numbers are held against the plain build's command (build/bin/hlo-replay) where there is one.
set -euo pipefail
cd "$(dirname "$0")/../.."
wheel=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bash tests/dev/setup.sh aarch64
root=$(python3 -c 'import sys; sys.path.insert(0, "python"); import wheel_parts as w; print(w.older_glibc("aarch64"))')
python3 -m zipfile -e "$wheel" "$work/wheel"
chmod +x "$work/wheel/hlo_replay/bin/hlo-replay"
tool() { qemu-aarch64-static -L "$root" "$work/wheel/hlo_replay/bin/hlo-replay" "$@"; }
timed() { # WORDS…
  local start
  start=$(date +%s.%N)
  tool "$@" >"$work/out" 2>&1 || { echo "FAILED: hlo-replay $*"; tail -20 "$work/out"; exit 1; }
  printf '%6.1f s  hlo-replay %s\n' "$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { print b - a }')" "$*"
}
timed --version
timed testdata/mobilenet_v1.hlo -o "$work/replay"
test -s "$work/replay/index.html"
for module in mnist_softmax linear_regression; do
  timed exec testdata/$module.hlo --seed=1 --out="$work/$module.npz"
  timed exec testdata/$module.hlo --backend=host --seed=1 --compare-with="$work/$module.npz"
  if [ -x build/bin/hlo-replay ]; then
    build/bin/hlo-replay exec testdata/$module.hlo --seed=1 --compare-with="$work/$module.npz" >"$work/out" 2>&1 \
      || { echo "FAILED: $module differs from this machine's numbers"; cat "$work/out"; exit 1; }
    echo "           $module: this machine's numbers"
  fi
done
timed convert testdata/linear_regression.hlo "$work/m.ptx"
timed convert testdata/mnist_softmax.hlo "$work/m.pb"
