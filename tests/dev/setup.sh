#!/usr/bin/env bash
# Installs what a bare Debian 12 lacks for building and testing; does nothing where all is there. `setup.sh python` also
# makes build/venv, with what the Python package is built and tested with (python-requirements.txt); `setup.sh engine`
# installs what makes the page's engine (850 MB, most of it emscripten). Both may be named.
set -euo pipefail
cd "$(dirname "$0")/../.."
packages=(g++ cmake ninja-build pkg-config ccache python3 python3-venv fonts-dejavu-core
  libfmt-dev nlohmann-json3-dev libcli11-dev libdtl-dev graphviz libzip-dev libopenblas-dev libdnnl-dev llvm-19-dev libgtest-dev libbenchmark-dev libprotobuf-dev protobuf-compiler zlib1g-dev libzstd-dev
  clang-format clang-tidy)
wants() { [[ " $words " == *" $1 "* ]]; }
words=$*
! wants python || packages+=(python3-dev)
if wants engine; then
  packages+=(emscripten node-acorn esbuild node-typescript)
  command -v node >/dev/null || packages+=(nodejs)
fi
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
wants python || exit 0
wanted=tests/dev/python-requirements.txt
cmp -s $wanted build/venv/requirements.txt && exit 0
rm -rf build/venv
mkdir -p build
python3 -m venv build/venv
build/venv/bin/pip install -q --disable-pip-version-check -r $wanted
cp $wanted build/venv/requirements.txt
