#!/usr/bin/env bash
# Installs what a bare Debian 12 lacks for building and testing; does nothing where all is there.
set -euo pipefail
packages=(g++ cmake ninja-build pkg-config ccache python3 python3-venv fonts-dejavu-core
  libfmt-dev nlohmann-json3-dev libcli11-dev libdtl-dev graphviz libzip-dev libopenblas-dev libdnnl-dev llvm-19-dev libgtest-dev libbenchmark-dev libprotobuf-dev protobuf-compiler zlib1g-dev libzstd-dev
  clang-format clang-tidy)
missing=()
for p in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing+=("$p")
done
[ ${#missing[@]} -eq 0 ] && exit 0
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
