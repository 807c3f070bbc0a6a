#!/usr/bin/env bash
# The wheel where nothing else is: tests/dev/chroot.sh WHEEL
# Debian 12 with python3 and python3-venv only (debootstrap, as root), the wheel in a virtual environment without a
# network (what it depends on, numpy and ml_dtypes, is fetched before), then what README shows first, its Python too. Prints seconds. The mirror is the machine's own (HLO_MIRROR for another);
# HLO_CHROOT names a folder that debootstrap has filled already and that is left as it was.
set -euo pipefail
cd "$(dirname "$0")/../.."
wheel=$1
work=$(mktemp -d)
mounts=()
clean() {
  for place in "${mounts[@]}"; do umount -l "$place" || true; done
  rm -rf --one-file-system "$work"
}
trap clean EXIT
command -v debootstrap >/dev/null || DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap >/dev/null
if [ -n "${HLO_CHROOT:-}" ]; then
  cp -a "$HLO_CHROOT" "$work/root"
else
  mirror=${HLO_MIRROR:-$(apt-get indextargets --format '$(SITE) $(CODENAME)' 'Identifier: Packages' | awk '$2 == "bookworm" { print $1; exit }')}
  proxy=$(apt-config dump --format '%v%n' Acquire::http::Proxy)
  echo "debootstrap from $mirror"
  env ${proxy:+http_proxy="$proxy"} debootstrap --variant=minbase --include=python3,python3-venv bookworm "$work/root" "$mirror" >"$work/log" \
    || { tail -20 "$work/log"; exit 1; }
fi
root=$work/root
mount -t proc proc "$root/proc" && mounts+=("$root/proc")
mkdir -p "$root/try/testdata"
cp "$wheel" "$root/try/"
python3 -m pip download -q --disable-pip-version-check --only-binary=:all: --python-version=3.11 --no-deps -d "$root/try" numpy ml_dtypes
cp testdata/mobilenet_v1.hlo testdata/mnist_softmax.hlo testdata/linear_regression.hlo "$root/try/testdata/"
# A folder as XLA dumps it: one of XLA's own where the checkout has them.
for archive in ../shared/dumps/*imagenette__infer* ../shared/dumps/*.tar.zst; do
  if [ -f "$archive" ] && command -v zstd >/dev/null; then
    mkdir "$root/try/dump"
    zstd -dc "$archive" | tar -x -C "$root/try/dump" --strip-components=1
    break
  fi
done
inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot "$root" /bin/sh -c "cd /try && $1"; }
timed() {
  local start
  start=$(date +%s.%N)
  inside "$2" >"$work/out" 2>&1 || { echo "FAILED: $1"; tail -20 "$work/out"; exit 1; }
  printf '%6.2f s  %s\n' "$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { print b - a }')" "$1"
}
timed "python3 -m venv" "python3 -m venv venv"
timed "pip install" "venv/bin/pip install --no-index ./*.whl"
# The lines of README's section Python, as they stand there.
python3 - "$root/try/readme.py" <<'P'
import pathlib, re, sys
text = pathlib.Path("README.md").read_text()
section = re.search(r"^## Python$(.*?)^## ", text, re.M | re.S)[1]
pathlib.Path(sys.argv[1]).write_text("\n".join(line[4:] for line in section.splitlines() if line.startswith("    ")))
P
timed "README's Python" "venv/bin/python readme.py"
timed "import hlo_replay" "venv/bin/python -c 'import hlo_replay'"
tool=venv/bin/hlo-replay
timed "hlo-replay --version" "$tool --version"
timed "hlo-replay testdata/mobilenet_v1.hlo -o out" "$tool testdata/mobilenet_v1.hlo -o out"
inside "test -s out/index.html" || { echo "FAILED: no out/index.html"; exit 1; }
if [ ! -d "$root/try/dump" ]; then
  mkdir "$root/try/dump"
  cp "$root"/try/out/module_*.txt "$root/try/dump/"
fi
timed "hlo-replay DUMP ($(ls "$root/try/dump" | wc -l) files)" "$tool dump"
timed "hlo-replay exec testdata/mobilenet_v1.hlo" "$tool exec testdata/mobilenet_v1.hlo --seed=1 --out=o.npz"
timed "hlo-replay exec --backend=host" "$tool exec testdata/mobilenet_v1.hlo --backend=host --seed=1 --compare-with=o.npz"
timed "hlo-replay convert to .dot" "$tool convert testdata/mnist_softmax.hlo m.dot"
timed "hlo-replay convert to .ptx" "$tool convert testdata/linear_regression.hlo m.ptx"
timed "convert to .pb and back" "$tool convert testdata/mnist_softmax.hlo m.pb && $tool convert m.pb m.hlo"
# What Graphviz draws is refused with what to install, and leaves nothing behind.
inside "$tool convert testdata/mnist_softmax.hlo m.svg" >"$work/out" 2>&1 && code=0 || code=$?
if [ $code -ne 2 ] || ! grep -q 'apt-get install graphviz' "$work/out" || [ -e "$root/try/m.svg" ]; then
  echo "FAILED: convert to .svg without Graphviz: exit $code"
  cat "$work/out"
  exit 1
fi
echo "           without Graphviz: $(cat "$work/out")"
