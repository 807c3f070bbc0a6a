// The page's engine in node, as its worker runs it: engine_ask.js ENGINE_FOLDER. A line of standard input is an order,
// {"put":NAME,"file":PATH}, {"started":true} (what it said when it started) or a question of viewer/page/protocol.ts; a line of standard output its answer, behind
// milliseconds and the module's memory in MB: `12.5 64 {...}`. The native twin is engine_ask.cc.
'use strict';
const fs = require('fs');
const path = require('path');
const readline = require('readline');
const vm = require('vm');
const zlib = require('zlib');

const folder = process.argv[2];
const waiting = new Map();
// What a worker's script finds around it.
globalThis.self = globalThis;
globalThis.location = { href: 'blob:engine' };
globalThis.importScripts = () => { throw new Error('a worker of ours loads nothing'); };
globalThis.fetch = () => { throw new Error('a worker of ours fetches nothing'); };
globalThis.postMessage = report => { waiting.get(report.id)(report); waiting.delete(report.id); };
// The memory is the module's own matter; the test wants to know of its size.
const memory = { bytes: 0 };
const instantiate = WebAssembly.instantiate;
WebAssembly.instantiate = async (...all) => {
  const out = await instantiate(...all);
  memory.of = Object.values(out.instance.exports).find(e => e instanceof WebAssembly.Memory);
  return out;
};
vm.runInThisContext(fs.readFileSync(path.join(folder, 'worker.js'), 'utf8'), { filename: 'worker.js' });

let next = 0;
function order(what) {
  const id = ++next;
  return new Promise(resolve => { waiting.set(id, resolve); globalThis.onmessage({ data: { ...what, id } }); });
}

async function main() {
  const wasm = zlib.gunzipSync(fs.readFileSync(path.join(folder, 'engine.wasm.gz')));
  const start = () => order({ order: 'start', wasm: wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.length) });
  const started = await start();
  for await (const line of readline.createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    const asked = JSON.parse(line);
    const what = asked.put === undefined ? { order: 'ask', question: line } :
      { order: 'put', name: asked.put, bytes: new Uint8Array(fs.readFileSync(asked.file)) };
    const from = performance.now();
    const report = asked.started ? started : await order(what);
    const ms = performance.now() - from;
    const text = 'ended' in report ? JSON.stringify({ ended: report.ended }) : Buffer.from(report.answer).toString('utf8');
    const mb = Math.round(memory.of.buffer.byteLength / 1e6);
    if (!process.stdout.write(`${ms.toFixed(1)} ${mb} ${text}\n`)) await new Promise(go => process.stdout.once('drain', go));
    if ('ended' in report) await start();
  }
}
main().catch(error => { console.error(error); process.exit(2); });
