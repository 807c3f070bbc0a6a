// Runs inside of the worker: the engine's module, and its questions one after another. The other end is connect.ts.
import makeEngine, { EngineModule } from 'hlo-engine-glue';
import { ProtocolVersion } from './protocol';

/** `start` comes first and once; its answer is {protocol}, the ProtocolVersion that the engine was made with. Bytes are
 *  given away. */
export type Order =
  | { id: number; order: 'start'; wasm: ArrayBuffer }
  | { id: number; order: 'put'; name: string; bytes: Uint8Array }
  | { id: number; order: 'ask'; question: string };

/** An answer is JSON as UTF-8. `ended`: the engine is of no use from now on; another worker has to be started. */
export type Report = { id: number; answer: ArrayBuffer } | { id: number; ended: string };

interface WorkerScope {
  onmessage: ((event: { data: Order }) => void) | null;
  postMessage(report: Report, give?: ArrayBuffer[]): void;
}
const scope = globalThis as unknown as WorkerScope;

let engine: EngineModule | null = null;
let last_words = '';

class OutOfMemory extends Error {}

function given(bytes: Uint8Array): number {
  const at = engine!._hlo_allocate(bytes.length) >>> 0;
  if (!at) throw new OutOfMemory();
  engine!.HEAPU8.set(bytes, at);
  return at;
}

function answer(): ArrayBuffer {
  const at = engine!._hlo_answer_bytes() >>> 0;
  return engine!.HEAPU8.slice(at, at + (engine!._hlo_answer_size() >>> 0)).buffer;
}

function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function failure(message: string, hint: string): ArrayBuffer {
  return utf8(JSON.stringify({ error: { message, hint } })).buffer as ArrayBuffer;
}

async function done(order: Order): Promise<ArrayBuffer> {
  if (order.order === 'start') {
    const quiet = (line: string) => {
      last_words = line;
    };
    engine = await makeEngine({ wasmBinary: order.wasm, print: quiet, printErr: quiet });
    return utf8(JSON.stringify({ protocol: ProtocolVersion })).buffer as ArrayBuffer;
  }
  if (!engine) throw new Error('it was not started');
  if (order.order === 'put') {
    const name = utf8(order.name);
    const bytes = given(order.bytes);
    engine._hlo_put(given(name), name.length, bytes, order.bytes.length);
  } else {
    const question = utf8(order.question);
    engine._hlo_ask(given(question), question.length);
  }
  return answer();
}

/** What ended it, in words. */
function why(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  if (error instanceof RangeError && /call stack/i.test(text)) return 'what it was given is nested too deep';
  if (/out of memory|cannot enlarge memory/i.test(text + last_words)) return 'it is out of memory';
  return text;
}

async function work(order: Order): Promise<void> {
  try {
    const bytes = await done(order);
    scope.postMessage({ id: order.id, answer: bytes }, [bytes]);
  } catch (error) {
    if (error instanceof OutOfMemory) {
      const bytes = failure('the engine is out of memory', 'hlo-replay view --serve takes larger ones');
      scope.postMessage({ id: order.id, answer: bytes }, [bytes]);
      return;
    }
    engine = null;
    scope.postMessage({ id: order.id, ended: why(error) });
  }
}

let queue: Promise<void> = Promise.resolve();
scope.onmessage = (event) => {
  queue = queue.then(() => work(event.data));
};
