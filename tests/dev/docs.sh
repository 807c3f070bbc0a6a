#!/usr/bin/env bash
# docs/ as static HTML in build/docs (mkdocs, from Debian or PyPI): every link and every page of the navigation checked, and that nothing
# is asked of a network. Usage: tests/dev/docs.sh [OUT]
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(realpath -m "${1:-build/docs}")
if ! command -v mkdocs >/dev/null; then
  if [ "$(id -u)" -eq 0 ] && apt-get install -y -qq --no-install-recommends mkdocs >/dev/null 2>&1; then :; else
    echo "error: mkdocs is not here: apt-get install mkdocs, or pip install mkdocs" >&2
    exit 2
  fi
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
mkdocs build --quiet --strict --clean --config-file mkdocs.yml --site-dir "$out" 2>&1 | tee "$log"
python3 - "$out" <<'PY'
import html.parser
import pathlib
import sys
import urllib.parse

out = pathlib.Path(sys.argv[1])
pages = {f.resolve(): None for f in out.rglob("*.html") if f.name != "404.html"}
faults = []


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.ids, self.links, self.loads = set(), [], []

    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        self.ids.update(v for k, v in attrs if k in ("id", "name") and v)
        if tag == "a" and a.get("href"):
            self.links.append(a["href"])
        if tag in ("script", "img", "iframe") and a.get("src"):
            self.loads.append(a["src"])
        if tag == "link" and a.get("href") and a.get("rel") != "canonical":
            self.loads.append(a["href"])


for file in pages:
    pages[file] = Page()
    pages[file].feed(file.read_text())
for file, page in pages.items():
    name = file.relative_to(out.resolve())
    for url in page.loads:
        if "//" in url:
            faults.append(f"{name} asks a network for {url}")
    for url in page.links + page.loads:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme or parts.netloc:
            continue
        target = (file.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else file
        if not target.exists():
            faults.append(f"{name} links to {url}, which is not there")
        elif parts.fragment and target in pages and parts.fragment not in pages[target].ids:
            faults.append(f"{name} links to {url}: no such heading")
linked = {(f.parent / urllib.parse.urlsplit(u).path).resolve() for f, p in pages.items() for u in p.links}
faults += [f"{f.relative_to(out.resolve())} is in no navigation (nav of mkdocs.yml)" for f in pages if f not in linked]
print(*faults, sep="\n") if faults else print(f"{len(pages)} pages in {out}")
sys.exit(bool(faults))
PY
