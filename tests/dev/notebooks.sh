#!/usr/bin/env bash
# Executes docs/notebooks with the wheel in a virtual environment of its own: tests/dev/notebooks.sh WHEEL
# What they show goes to build/notebooks/*.html, to be looked at; a cell that raises, and a page that asks for anything
# from elsewhere, is a failure. The notebooks themselves are left as they are, without outputs.
set -euo pipefail
cd "$(dirname "$0")/../.."
wheel=$(realpath "$1")
out=$PWD/build/notebooks
rm -rf "$out"
mkdir -p "$out"
python3 -m venv "$out/venv"
"$out/venv/bin/pip" install -q --disable-pip-version-check nbclient==0.11.0 nbconvert==7.17.2 ipykernel==7.4.0 pandas==2.3.3 "$wheel"
for notebook in docs/notebooks/*.ipynb; do
  (cd docs/notebooks && "$out/venv/bin/jupyter" nbconvert --log-level=WARN --execute --to html --output-dir "$out" "$(basename "$notebook")")
  page=$out/$(basename "$notebook" .ipynb).html
  "$out/venv/bin/python" - "$page" <<'P'
import pathlib, re, sys
page = pathlib.Path(sys.argv[1]).read_text()
boxes = page.count('<div class="hlor">')
own = "".join(re.findall(r'<style>\n\.hlor.*?</div>\s*</div>', page, re.S))
assert boxes >= 5, f"{boxes} things of ours are shown"
assert not re.search(r'(src|href)=["\']?https?:', own), "what we show asks for something from elsewhere"
print(f"{sys.argv[1]}: {boxes} things shown, {len(page):,} characters")
P
done
