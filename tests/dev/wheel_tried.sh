#!/usr/bin/env bash
# Seconds from a wheel to its first answer on bare systems: tests/dev/wheel_tried.sh WHEEL [SUITE…]
# Each suite of Debian (bullseye bookworm trixie forky when none is named) with python3 and python3-venv only, by
# debootstrap, as root; pip installs without a network (numpy and ml_dtypes are fetched before, where the wheel asks for
# them). Prints a table for docs/HACKING.md; fails where anything does. HLO_CHROOTS keeps what debootstrap made, a folder
# a suite; the mirror is the machine's own (HLO_MIRROR for another). An aarch64 wheel: wheel_aarch64.sh.
set -uo pipefail
cd "$(dirname "$0")/../.."
[ $# -gt 0 ] || { sed -n 2p "$0"; exit 2; }
wheel=$1
shift
suites=("$@")
[ ${#suites[@]} -gt 0 ] || suites=(bullseye bookworm trixie forky)
work=$(mktemp -d)
mounted=()
clean() {
  for place in "${mounted[@]}"; do umount -l "$place" || true; done
  rm -rf --one-file-system "$work"
}
trap clean EXIT
kept=${HLO_CHROOTS:-$work/kept}
mirror=${HLO_MIRROR:-$(apt-get indextargets --format '$(SITE) $(CODENAME)' 'Identifier: Packages' | awk '$2 == "bookworm" { print $1; exit }')}
command -v debootstrap >/dev/null || DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap >/dev/null

root=""
inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot "$root" /bin/sh -c "cd /try && $1"; }
seconds=""
timed() { # COMMAND: run inside, its seconds in $seconds
  local start
  start=$(date +%s.%N)
  inside "$1" >"$work/out" 2>&1 || { echo "FAILED on $suite: $1"; tail -20 "$work/out"; return 1; }
  seconds=$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')
}
tried() { # SUITE: a row of the table in $row
  local suite=$1 version glibc venv install answer again package
  if [ ! -d "$kept/$suite" ]; then
    mkdir -p "$kept"
    # The script of sid is that of all suites: an older debootstrap has no names of newer ones.
    debootstrap --variant=minbase --include=python3,python3-venv "$suite" "$kept/$suite.made" "$mirror" /usr/share/debootstrap/scripts/sid >"$work/log" 2>&1 \
      || { tail -5 "$work/log"; return 1; }
    mv "$kept/$suite.made" "$kept/$suite"
  fi
  root=$work/$suite
  cp -a "$kept/$suite" "$root"
  mkdir -p "$root/try"
  mount -t proc proc "$root/proc" && mounted+=("$root/proc")
  cp "$wheel" testdata/mobilenet_v1.hlo "$root/try/"
  version=$(inside "python3 -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])'")
  glibc=$(inside "ldd --version" | awk 'NR == 1 { print $NF }')
  if python3 -c "import sys; sys.exit(tuple(map(int, '$version'.split('.'))) < (3, 11))"; then
    python3 -m pip download -q --disable-pip-version-check --only-binary=:all: --python-version="$version" --no-deps -d "$root/try" numpy ml_dtypes || return 1
  fi
  timed "python3 -m venv venv" || return 1
  venv=$seconds
  timed "venv/bin/pip install --no-index ./*.whl" || return 1
  install=$seconds
  timed "venv/bin/hlo-replay mobilenet_v1.hlo -o out && test -s out/index.html" || return 1
  answer=$seconds
  timed "venv/bin/hlo-replay exec mobilenet_v1.hlo --backend=host --seed=1 --out=o.npz && venv/bin/hlo-replay exec mobilenet_v1.hlo --seed=1 --compare-with=o.npz" || return 1
  again=$seconds
  if ls "$root"/try/numpy*.whl >/dev/null 2>&1; then
    timed "venv/bin/python -c \"import pathlib, hlo_replay as hlo; m = hlo.parse(pathlib.Path('mobilenet_v1.hlo')); print(len(hlo.replay(m).stages), m.run(*m.seeded_inputs(1), backend='host'))\"" || return 1
    package="$seconds s"
  else # what needs the extension says so
    timed "venv/bin/python -m hlo_replay --version" || return 1
    inside "venv/bin/python -c 'from hlo_replay import parse'" >"$work/out" 2>&1
    grep -q 'ImportError: hlo_replay.parse needs CPython' "$work/out" || { echo "FAILED on $suite: no word on the extension"; tail -3 "$work/out"; return 1; }
    package="command only"
  fi
  row="| $suite | $glibc | $version | $venv | $install | $answer | $(awk -v a="$venv" -v b="$install" -v c="$answer" 'BEGIN { printf "%.1f", a + b + c }') | $again | $package |"
  umount -l "$root/proc"
  mounted=()
  rm -rf --one-file-system "$root"
}

rows=() failed=0 row=""
for suite in "${suites[@]}"; do
  if tried "$suite"; then rows+=("$row"); else failed=1; fi
done
echo "$(basename "$wheel"), $(awk -v b="$(stat -c %s "$wheel")" 'BEGIN { printf "%.1f", b / 1e6 }') MB, seconds:"
echo "| Debian | glibc | Python | venv | pip install | first replay | together | exec, two ways | Python package |"
echo "|---|---|---|---|---|---|---|---|---|"
printf '%s\n' "${rows[@]}"
exit $failed
