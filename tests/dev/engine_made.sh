#!/usr/bin/env bash
# Makes the page's engine that stands in the sources (viewer/engine/made) new: tests/dev/engine_made.sh [--again | --compare]
# Does nothing where it is of these sources already; --again makes it all the same, --compare leaves it alone and says
# whether the same bytes come out (exit 1 where not). Takes emscripten (tests/dev/setup.sh engine) and a tree of its own,
# build-engine (--compare: build-engine-again, from nothing). inputs.sha256 names each file that a compiler read, as `sha256sum -c` takes it.
set -euo pipefail
cd "$(dirname "$0")/../.."
made=viewer/engine/made
case "${1:-}" in '' | --again | --compare) ;; *) echo "error: --again or --compare" >&2; exit 2 ;; esac
tree=build-engine
if [ "${1:-}" = --compare ]; then  # from nothing, in another folder
  tree=build-engine-again
  rm -rf $tree
  export CCACHE_DISABLE=1
fi
bash tests/dev/setup.sh engine
cmake -S . -B $tree -G Ninja -DHLO_UNITY=ON -DHLO_ENGINE=ON -DENGINE_OPTIMIZE=-O2 >/dev/null
if [ -z "${1:-}" ] && [ -f $made/inputs.sha256 ]; then
  cmake -DOUT="$PWD/$tree/state.cc" -DDIR="$PWD" -DREQUIRED="$PWD/$tree/page/engine_required.txt" -P viewer/engine/state.cmake
  if grep -q PageEngineState::kFresh $tree/state.cc; then
    echo "$made is of these sources: nothing to do"
    exit 0
  fi
fi
cmake --build $tree --target engine
# What it was made from: the dependencies that the compiler wrote down, as far as they are ours, and what is no C++. A
# batch that there is no longer may have left its own.
inputs() {
  cat $tree/page/engine_required.txt
  (cd $tree/engine && grep -o 'batches/[a-z_]*_[0-9]*\.d\b' ../build.ninja | sort -u | xargs cat) | tr -s ' \\\n' '\n' | sed -n "s|^$PWD/||p" | grep -v "^$tree/"
}
version() { dpkg-query -W -f='${Package} ${Version}, ' "$@"; }
told=$tree/inputs.sha256
mkdir -p $made
if [ "${1:-}" = --compare ]; then
  same=0
  for file in engine.wasm.gz worker.js; do
    if ! cmp -s $tree/engine/$file $made/$file; then
      echo "$made/$file: other bytes come out of these sources" && same=1
    fi
  done
  [ $same -ne 0 ] || echo "$made: the same bytes come out of these sources"
  exit $same
fi
cp $tree/engine/engine.wasm.gz $tree/engine/worker.js $made/
cp /usr/share/doc/emscripten/copyright $made/emscripten.copyright
{
  echo "# What the page's engine was made from, by tests/dev/engine_made.sh with $(version emscripten libfmt-dev nlohmann-json3-dev libdtl-dev esbuild | sed 's/, $//')."
  { inputs; echo $made/engine.wasm.gz; echo $made/worker.js; } | LC_ALL=C sort -u | xargs sha256sum
} >$told
mv $told $made/inputs.sha256
echo "$made: $(stat -c %s $made/engine.wasm.gz) bytes of engine.wasm.gz, $(stat -c %s $made/worker.js) of worker.js, made from $(grep -c '^[0-9a-f]' $made/inputs.sha256) files"
