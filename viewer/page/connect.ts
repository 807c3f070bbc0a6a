// The way to the engine that a page brings with it, in a worker. Those of other pages: answers.ts.
import { Engine, ProtocolVersion } from './protocol';
import type { Order, Report } from './worker';

/** What the engine refused, in its words. `line` and `column` (from 1) are places in a text that was given. */
export class EngineError extends Error {
  constructor(message: string, readonly hint = '', readonly line = 0, readonly column = 0) {
    super(message);
    this.name = 'EngineError';
  }
}

interface Transport {
  put(name: string, bytes: Uint8Array): Promise<unknown>;
  ask(question: string): Promise<unknown>;
}

/** The answer of a question, or what it failed with. */
function checked(answer: unknown): unknown {
  const error = (answer as { error?: { message: string; hint?: string; line?: number; column?: number } } | null)?.error;
  if (error) throw new EngineError(error.message, error.hint, error.line, error.column);
  return answer;
}

/** All methods of Engine are questions of their name but `open`, whose files go first. */
function engine_over(transport: Transport): Engine {
  const open = async (files: { name: string; bytes: Uint8Array }[]) => {
    for (const file of files) checked(await transport.put(file.name, file.bytes));
    return checked(await transport.ask(JSON.stringify({ method: 'open' })));
  };
  const methods = new Map<string, unknown>();
  return new Proxy({}, {
    get(_, method) {
      if (typeof method !== 'string' || method === 'then') return undefined; // it is no promise
      if (method === 'open') return open;
      if (!methods.has(method)) {
        methods.set(method, async (question?: object) => checked(await transport.ask(JSON.stringify({ ...question, method }))));
      }
      return methods.get(method);
    },
  }) as Engine;
}

/** A worker that is started with the first question, and anew after it ended. */
class WorkerTransport implements Transport {
  private worker: Worker | null = null;
  private waiting = new Map<number, { resolve(answer: unknown): void; reject(error: Error): void }>();
  private next = 0;

  constructor(private wasm: Uint8Array, private source: string, private ended: (why: string) => void) {}

  /** A copy is given away: of bytes within a larger buffer (a file of an archive) the whole buffer would be copied. */
  put(name: string, bytes: Uint8Array): Promise<unknown> {
    const own = bytes.slice();
    return this.send({ id: 0, order: 'put', name, bytes: own }, [own.buffer as ArrayBuffer]);
  }
  ask(question: string): Promise<unknown> {
    return this.send({ id: 0, order: 'ask', question });
  }

  private send(order: Order, give: ArrayBuffer[] = []): Promise<unknown> {
    if (!this.worker) this.start();
    order.id = ++this.next;
    return new Promise((resolve, reject) => {
      this.waiting.set(order.id, { resolve, reject });
      this.worker!.postMessage(order, give);
    });
  }

  private start(): void {
    const url = URL.createObjectURL(new Blob([this.source], { type: 'text/javascript' }));
    const worker = this.worker = new Worker(url);
    worker.onmessage = (event: { data: Report }) => {
      if (this.worker === worker) this.hear(event.data);
    };
    worker.onerror = (event) => {
      if (this.worker === worker) this.end(event.message || 'its worker did not start');
    };
    URL.revokeObjectURL(url);
    const wasm = this.wasm.slice().buffer as ArrayBuffer;
    this.send({ id: 0, order: 'start', wasm }, [wasm]).then((answer) => {
      const made = (answer as { protocol?: number }).protocol;
      if (made !== ProtocolVersion && this.worker === worker) {
        this.end(`it answers version ${made ?? 0} of a page's questions, and this page asks version ${ProtocolVersion}`);
      }
    }, () => undefined); // who asked hears of it
  }

  private hear(report: Report): void {
    if ('ended' in report) return this.end(report.ended);
    const asked = this.waiting.get(report.id);
    this.waiting.delete(report.id);
    try {
      asked?.resolve(JSON.parse(new TextDecoder().decode(report.answer)));
    } catch (error) {
      asked?.reject(new EngineError('the answer is larger than this browser takes', String(error)));
    }
  }

  private end(why: string): void {
    this.worker?.terminate();
    this.worker = null;
    const all = [...this.waiting.values()];
    this.waiting.clear();
    for (const asked of all) asked.reject(new EngineError(`the engine ended: ${why}`, 'what was open has to be opened again'));
    this.ended(why);
  }
}

/** The engine that a page brings with it. `ended`: it came to an end (out of memory, a fault) and is started anew with
 *  the next question, with nothing open. Every question that was under way fails with an EngineError. */
export function connectWorker(wasmBytes: Uint8Array, workerSource: string, ended: (why: string) => void = () => undefined): Engine {
  return engine_over(new WorkerTransport(wasmBytes, workerSource, ended));
}
