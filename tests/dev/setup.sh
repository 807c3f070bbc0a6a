#!/usr/bin/env bash
# Installs what a bare Debian 12 lacks for building hlo-replay; does nothing where all is there. Words add to that:
#   tests    what the tests are built with, clang-format and clang-tidy
#   python   build/venv, with what the Python package is built and tested with (python-requirements.txt)
#   browser  build/venv with Playwright, and Chromium: tests/browser; node and TypeScript, which other tests of the page take
#   engine   emscripten (800 MB): the page's engine made new, tests/dev/engine_made.sh
#   aarch64  what the wheel for 64-bit ARM is built with and tried by (python/build_wheel.py --machine=aarch64)
set -euo pipefail
cd "$(dirname "$0")/../.."
packages=(g++ cmake ninja-build pkg-config ccache python3
  libfmt-dev nlohmann-json3-dev libcli11-dev libdtl-dev graphviz libzip-dev libopenblas-dev libdnnl-dev llvm-19-dev libprotobuf-dev protobuf-compiler zlib1g-dev libzstd-dev
  esbuild libjs-codemirror)
wanted() { case " $words " in *" $1 "*) true ;; *) false ;; esac; }
words="$*"
! wanted tests || packages+=(libgtest-dev libbenchmark-dev clang-format clang-tidy lld fonts-dejavu-core)
! wanted python || packages+=(python3-venv python3-dev dpkg-dev)
! wanted browser || packages+=(python3-venv chromium fonts-dejavu-core nodejs node-typescript)
! wanted engine || packages+=(emscripten node-acorn nodejs node-typescript)
! wanted aarch64 || packages+=(g++-aarch64-linux-gnu qemu-user-static)
missing=()
for p in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing+=("$p")
done
if [ ${#missing[@]} -gt 0 ]; then
  as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
wanted python || wanted browser || exit 0
requirements=tests/dev/python-requirements.txt
cmp -s $requirements build/venv/requirements.txt && exit 0
rm -rf build/venv
mkdir -p build
python3 -m venv build/venv
build/venv/bin/pip install -q --disable-pip-version-check -r $requirements
cp $requirements build/venv/requirements.txt
