#!/bin/bash
# Checks the page's TypeScript and bundles it: build.sh OUT writes OUT/page.js and OUT/page.css. Needs Debian's esbuild,
# node-typescript and libjs-codemirror, no network.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?"build.sh OUT"}
mkdir -p "$out"
[ "${2:-}" = --no-check ] || tsc -p "$here/tsconfig.json"
export NODE_PATH=/usr/share/javascript   # where Debian keeps codemirror
licence='/* hlo-replay; with CodeMirror 5, copyright by Marijn Haverbeke and others, MIT licence: https://codemirror.net/5/LICENSE */'
esbuild "$here/main.ts" --bundle --minify --charset=utf8 --target=es2020 --format=iife --log-level=warning --banner:js="$licence" --outfile="$out/page.js"
esbuild "$here/style.css" --bundle --minify --charset=utf8 --log-level=warning --banner:css="$licence" --outfile="$out/page.css"
