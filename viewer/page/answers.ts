// Engines of pages that have none inside: the program behind `view --serve`, and answers that were made beforehand.
import { EngineError } from './connect';
import { Carried, Engine } from './protocol';
import { File_ } from './unpack';

type Question = Record<string, unknown>;

function answer_of(answer: { error?: { message?: string; hint?: string; line?: number; column?: number } }): unknown {
  if (answer?.error) {
    throw new EngineError(String(answer.error.message ?? 'the engine says no'), answer.error.hint ?? '', answer.error.line, answer.error.column);
  }
  return answer;
}

function engine_of(ask: (method: string, q: Question) => Promise<unknown>, open: (files: File_[]) => Promise<unknown>): Engine {
  return new Proxy({} as Engine, {
    get(_, method: string) {
      if (method === 'then') return undefined; // no promise
      return method === 'open' ? open : (q?: Question) => ask(method, q ?? {});
    },
  });
}

/** The program itself, on this machine's loopback, below the address of the page. */
export function served(): Engine {
  const post = async (path: string, body: BodyInit) => {
    const reply = await fetch(path, { method: 'POST', body, cache: 'no-store' }).catch(() => {
      throw new EngineError('The program that serves this page has ended', 'Start `hlo-replay view --serve` again.');
    });
    if (!reply.ok) throw new EngineError((await reply.text()).slice(0, 500) || `the program says ${reply.status}`);
    return reply.json();
  };
  const ask = async (method: string, q: Question) => answer_of(await post('ask', JSON.stringify({ ...q, method })));
  return engine_of(ask, async (files) => {
    for (const file of files) answer_of(await post('put?name=' + encodeURIComponent(file.name), file.bytes as unknown as BodyInit));
    return ask('open', {});
  });
}

/** A question as one text: members by name, without those that are null, as the program wrote them down. */
function as_text(value: unknown): string {
  if (Array.isArray(value)) return '[' + value.map(as_text).join(',') + ']';
  if (value && typeof value === 'object') {
    return '{' + Object.entries(value as Question).filter(([, v]) =>
      v !== null && v !== undefined
    ).sort(([a], [b]) => a < b ? -1 : a > b ? 1 : 0).map(([k, v]) => JSON.stringify(k) + ':' + as_text(v)).join(',') + '}';
  }
  return JSON.stringify(value);
}

export const how_to_get_it = '`bash tests/dev/engine_made.sh` makes the engine for the next build; `hlo-replay view --serve` does without.';

/** Answers made beforehand, read when they are asked for. What was not asked beforehand is refused. */
export function carried(files: File_[]): Engine {
  const decoder = new TextDecoder(), by_name = new Map(files.map((file) => [file.name, file.bytes]));
  const list = by_name.get('answers.json'), places = new Map<string, number>();
  if (list) (JSON.parse(decoder.decode(list)) as string[]).forEach((question, i) => places.set(as_text(JSON.parse(question)), i));
  return engine_of(async (method, q) => {
    const place = places.get(as_text({ ...q, method })), bytes = place === undefined ? undefined : by_name.get(`answers/${place}.json`);
    if (bytes) return answer_of(JSON.parse(decoder.decode(bytes)));
    if (method === 'modules') return { modules: [] };
    const known = (Carried as readonly string[]).includes(method);
    throw new EngineError(
      known
        ? 'This page was made without the engine, and this answer is not among those it carries.'
        : `This page was made without the engine: it cannot ${method.replace(/_/g, ' ')}.`,
      how_to_get_it,
    );
  }, async () => {
    throw new EngineError('This page was made without the engine and cannot open files.', how_to_get_it);
  });
}
