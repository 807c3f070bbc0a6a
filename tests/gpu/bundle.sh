#!/bin/bash
# Packs what tests/gpu/card.py needs into one folder that runs on a machine with a card and nothing installed:
#   tests/gpu/bundle.sh [FOLDER]   (default build-bundle/gpu), and FOLDER.tar.xz beside it
# HLO_CARD_DUMPS: folder of dumps of a card, unpacked (NAME, NAME.emit); HLO_CARD_FINALS: others, whose final modules go along.
# The tool and its tests are one binary with LLVM linked in.
set -eu
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=${1:-$root/build-bundle/gpu}
cmake -S "$root" -B "$root/build-bundle" -G Ninja -DHLO_STATIC_LLVM=ON >/dev/null
cmake --build "$root/build-bundle" --target hlo_bundle
rm -rf "$folder"
mkdir -p "$folder/bin" "$folder/lib" "$folder/modules"
strip -o "$folder/bin/hlo-replay" "$root/build-bundle/tests/hlo_bundle"
ldd "$root/build-bundle/tests/hlo_bundle" | awk '$3 ~ /^\// { print $3 }' | while read -r library; do
  cp -L "$library" "$folder/lib/"
done
# libc's own parts only for the bundled loader; the machine's come first where they are new enough.
mkdir -p "$folder/lib/libc"
for part in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1; do
  [ -f "$folder/lib/$part" ] && mv "$folder/lib/$part" "$folder/lib/libc/"
done
cp -L /lib64/ld-linux-x86-64.so.2 "$folder/lib/"
for blas in /usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0 /usr/lib/x86_64-linux-gnu/libopenblas.so.0; do
  if [ -f "$blas" ]; then
    cp -L "$blas" "$folder/lib/libopenblas.so.0"
    for need in $(ldd "$blas" | awk '$3 ~ /libgfortran|libquadmath/ { print $3 }'); do cp -L "$need" "$folder/lib/"; done
    break
  fi
done
for library in /usr/local/cuda/nvvm/libdevice/libdevice.10.bc "${HLO_LIBDEVICE:-}"; do
  [ -f "$library" ] && cp "$library" "$folder/lib/libdevice.10.bc" && break
done
cp "$root"/tests/gpu/*.py "$folder/"
mkdir -p "$folder/dev"
cp "$root"/tests/dev/oracle/{final_calls,cut_calls}.py "$folder/dev/"
mkdir -p "$folder/testdata/eval"
cp -r "$root/testdata/kernels" "$root/testdata/gpu_kernels" "$root/testdata/gpu" "$root/testdata"/*.hlo "$folder/testdata/"
cp "$root/testdata/eval/ops.jsonl" "$folder/testdata/eval/"
# The runnable corpus, where the checkout has it.
corpus=$root/../shared/corpus
for name in rocm__clip__infer rocm__clip__train rocm__detr rocm__imagenette rocm__resnet50 xla__cpubench xla__gpubench__u4 \
  xla__multihost__fp8 xla__multihost__while xla__multihost__single xla__tests__isolated xla__thunk_coverage xla__tools_data \
  mobilenet_v2; do
  for file in "$corpus/$name"*; do
    if [ -f "$file" ] && [ "$(stat -c %s "$file")" -lt 8000000 ]; then cp "$file" "$folder/modules/"; fi
  done
done
if [ -d "${HLO_CARD_DUMPS:-}" ]; then
  (cd "$HLO_CARD_DUMPS" && find . -name '*gpu_after_optimizations.txt' -o -name '*.profile.json' -o -path './*.emit/*' \( -name '*.ptx' -o -name '*.txt' -o -name '*.pbtxt' \) | tar -cf - -T -) | (mkdir -p "$folder/dumps" && tar -C "$folder/dumps" -xf -)
fi
for finals in ${HLO_CARD_FINALS:-}; do
  (cd "$finals" && find . -name '*after_optimizations.txt' | tar -cf - -T -) | (mkdir -p "$folder/finals/$(basename "$finals")" && tar -C "$folder/finals/$(basename "$finals")" -xf -)
done
tar -C "$(dirname "$folder")" -cJf "$folder.tar.xz" "$(basename "$folder")"
du -sh "$folder" "$folder.tar.xz"
