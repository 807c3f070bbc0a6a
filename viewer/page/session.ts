// What the page shows, and how it goes from there to somewhere else: one place at a time, every place an address.
import { Engine, Id, ModuleInfo, Row, StateRef } from './protocol';

export const view_names = [
  'overview',
  'graph',
  'text',
  'diff',
  'rewrites',
  'side',
  'follow',
  'search',
  'fusion',
  'memory',
  'thunks',
  'roofline',
  'links',
  'bench',
  'lesson',
] as const;
export type ViewName = typeof view_names[number];

export interface Place {
  at: StateRef;
  view: ViewName;
  op: Id | null;
  name: string; // of op, as the address tells it
  open: string[] | null; // groups that are open; null: what is best at first sight
  all: boolean; // everything is open
  against: StateRef | null; // the other one of diff and side by side; null: the state before
  query: string; // of the search; of a lesson that predicts, what was said so far
  lesson: string; // of the view `lesson`; '' lists them
  step: number; // of the lesson, from 1
}

export interface Notice {
  kind: 'error' | 'note';
  message: string;
  hint?: string;
  action?: { label: string; run: () => void };
}

export function same_state(a: StateRef | null, b: StateRef | null): boolean {
  return a === b || (!!a && !!b && a.module === b.module && a.state === b.state);
}

/** The part of an address behind its `#`. Only what differs from the usual stands in it. */
export function to_hash(place: Place, label: (at: StateRef) => string): string {
  const parts: [string, string][] = [];
  if (place.view === 'lesson') {
    const said = place.query ? `&said=${encodeURIComponent(place.query)}` : '';
    return '#lesson=' + encodeURIComponent(place.lesson) + (place.lesson ? `&step=${place.step}` : '') + said;
  }
  if (place.at.module) parts.push(['m', String(place.at.module)]);
  parts.push(['stage', label(place.at)]);
  if (place.op !== null && place.name && place.name.length < 400) parts.push(['op', place.name]);
  parts.push(['view', place.view]);
  if (place.all) parts.push(['open', '*']);
  else if (place.open && place.open.length < 200) parts.push(['open', place.open.join(',')]);
  if (place.against) parts.push(['with', `${place.against.module}.${label(place.against)}`]);
  if (place.query && place.view === 'search') parts.push(['q', place.query]);
  return '#' + parts.map(([k, v]) => k + '=' + encodeURIComponent(v).replace(/%2C/g, ',').replace(/%3A/g, ':')).join('&');
}

/** Stages as `Session.number_of` writes them. */
export interface Address {
  module: number;
  stage: string | null;
  op: string;
  view: ViewName | null;
  open: string[] | null;
  all: boolean;
  against: { module: number; stage: string } | null;
  query: string;
  lesson: string | null;
  step: number;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function from_hash(hash: string): Address {
  const words = new Map<string, string>();
  for (const part of hash.replace(/^#/, '').split('&')) {
    const at = part.indexOf('=');
    if (at > 0) words.set(part.slice(0, at), decode(part.slice(at + 1)));
  }
  const number = (text: string | undefined) => text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : null;
  const other = (words.get('with') ?? '').match(/^(\d{1,9})\.(\d{1,9})$/);
  const open = words.get('open');
  const lesson = words.get('lesson') ?? null, view = lesson !== null ? 'lesson' : words.get('view') as ViewName;
  return {
    module: number(words.get('m')) ?? 0,
    stage: number(words.get('stage')) === null ? null : words.get('stage') as string,
    op: words.get('op') ?? '',
    view: view_names.includes(view) ? view : null,
    open: open === undefined || open === '*' ? null : open.split(',').filter((k) => k !== ''),
    all: open === '*',
    against: other ? { module: Number(other[1]), stage: other[2] } : null,
    query: words.get(lesson !== null ? 'said' : 'q') ?? '',
    lesson,
    step: number(words.get('step')) ?? 1,
  };
}

/** Answers that do not change (states are only ever appended) are kept: the last few of each method. */
class Kept {
  private answers = new Map<string, Promise<unknown>>();
  constructor(private limit: number) {}
  ask<T>(key: string, make: () => Promise<T>): Promise<T> {
    const known = this.answers.get(key) as Promise<T> | undefined;
    if (known) {
      this.answers.delete(key);
      this.answers.set(key, known);
      return known;
    }
    const made = make();
    this.answers.set(key, made);
    made.catch(() => {
      if (this.answers.get(key) === made) this.answers.delete(key);
    });
    if (this.answers.size > this.limit) this.answers.delete(this.answers.keys().next().value as string);
    return made;
  }
  clear(): void {
    this.answers.clear();
  }
}

const keep: { [method: string]: number } = {
  drawing: 12,
  text: 60,
  op: 200,
  diff: 12,
  memory: 8,
  roofline: 8,
  summary: 12,
  thunks: 8,
  decisions: 8,
  rewrites: 20,
  follow: 2000,
  locate: 200,
  passes: 1,
};

/** The engine with its answers kept; methods and types stay the same. */
export function keeping(engine: Engine): Engine & { forget(): void } {
  const stores = new Map<string, Kept>();
  const forget = () => {
    for (const store of stores.values()) store.clear();
  };
  return new Proxy({} as Engine & { forget(): void }, {
    get(_, method: string) {
      if (method === 'forget') return forget;
      const call = (engine as unknown as Record<string, (q?: unknown) => Promise<unknown>>)[method];
      if (typeof call !== 'function') return undefined;
      const limit = keep[method];
      if (!limit) return (q?: unknown) => call.call(engine, q);
      return (q?: unknown) => {
        let store = stores.get(method);
        if (!store) stores.set(method, store = new Kept(limit));
        return store.ask(JSON.stringify(q ?? null), () => call.call(engine, q));
      };
    },
  });
}

/** Of several rows that end with the state the one that made it. */
function maker(rows: Row[], state: number): Row | null {
  let found: Row | null = null;
  for (const row of rows) {
    if (row.state === state && row.kind !== 'pipeline-start' && (row.changed || !found)) {
      found = row;
      if (row.changed) break;
    }
  }
  return found;
}

export class Session {
  modules: ModuleInfo[] = [];
  place: Place = { at: { module: 0, state: 0 }, view: 'bench', op: null, name: '', open: null, all: false, against: null, query: '', lesson: '', step: 1 };
  engine: Engine & { forget(): void };
  /** Ops that the graph frames: hits of the search, values with NaNs. */
  marked: { at: StateRef; ids: Id[] } | null = null;
  private known_rows = new Map<number, Row[]>();
  private turn = 0;

  constructor(engine: Engine, public can_do: boolean) {
    this.engine = keeping(engine);
  }

  async load(): Promise<void> {
    this.modules = (await this.engine.modules()).modules;
    this.known_rows.clear();
  }

  info(module = this.place.at.module): ModuleInfo | undefined {
    return this.modules.find((m) => m.module === module);
  }

  /** A state of a module, its last one where none is named. Of a run's many modules the stages are read only now. */
  async in_module(module: number, state: number | null): Promise<StateRef> {
    if (!this.info(module)?.states) {
      await this.rows(module);
      await this.load();
    }
    const last = Math.max(0, (this.info(module)?.states ?? 1) - 1);
    return { module, state: Math.min(state ?? last, last) };
  }

  async rows(module = this.place.at.module): Promise<Row[]> {
    const known = this.known_rows.get(module);
    if (known) return known;
    const { rows } = await this.engine.rows({ module });
    if (this.info(module)?.source !== 'bench') this.known_rows.set(module, rows);
    return rows;
  }

  /** The modules of these states of which no rows are here yet. */
  without_rows(states: (StateRef | null)[]): number[] {
    return [...new Set(states.flatMap((at) => at && !this.known_rows.has(at.module) ? [at.module] : []))];
  }

  /** The number of the stage as the files and the command line have it, of four digits at least: `0041`; its place among
   *  the module's states where no file has one: `3`. Rows that were never asked for have none yet. */
  number_of(at: StateRef): string {
    const number = maker(this.known_rows.get(at.module) ?? [], at.state)?.number ?? null;
    return number === null ? String(at.state) : String(number).padStart(4, '0');
  }
  /** The same in words: `stage 0041`, `before_optimizations`. */
  stage_words(at: StateRef): string {
    const row = maker(this.known_rows.get(at.module) ?? [], at.state);
    return row && row.number === null && row.kind !== 'pass' && row.kind !== 'step' && row.name ? row.name.slice(0, 80) : `stage ${this.number_of(at)}`;
  }
  /** The state that `number_of` calls so; the nearest one of the module for any other number. */
  async numbered(module: number, text: string): Promise<StateRef> {
    if (!/^\d{4,}$/.test(text)) return await this.in_module(module, Number(text));
    const number = Number(text);
    let state: number | null = null;
    for (const row of await this.rows(module)) {
      if (row.number !== null && row.number > number) break;
      state = row.state ?? state;
    }
    return await this.in_module(module, state ?? 0);
  }

  /** A new place is shown; what is still under way for an older one asks `fresh` and stops. */
  begin(): number {
    return ++this.turn;
  }
  fresh(turn: number): boolean {
    return turn === this.turn;
  }

  /** What the state is compared with: the one asked for, or the one before. */
  base(place = this.place): StateRef | null {
    if (place.against) return place.against;
    return place.at.state > 0 ? { module: place.at.module, state: place.at.state - 1 } : null;
  }

  /** The row that ended with this state, if any. */
  async row_of(at: StateRef): Promise<Row | null> {
    return maker(await this.rows(at.module), at.state);
  }

  /** An instruction by its name in a state; null where none has exactly that name. */
  async by_name(at: StateRef, name: string): Promise<Id | null> {
    const wanted = name.replace(/^%/, ''), query = `name:"${wanted.replace(/"/g, '')}"`;
    for (let limit = 2000;; limit = 1_000_000) { // names that hold this one may be many
      const { hits, total } = await this.engine.search({ at, query, limit });
      const hit = hits.find((one) => one.name.replace(/^%/, '') === wanted);
      if (hit) return hit.id;
      if (total <= hits.length || limit > 2000) return null;
    }
  }
}
