// The text of a stage: lines fetched as they come into sight, coloured by a small tokenizer, names that lead to their line.
import { Id, StateRef } from '../protocol';
import { h, longest_text, shorten, visible } from '../dom';
import { Host, View } from '../host';
import { Place, same_state } from '../session';
import { virtual_list, VirtualList } from '../virtual';

const window_lines = 2000; // asked for at once; a page without an engine carries them in these pieces
const pattern =
  /(\/\*.*?\*\/|\/\/.*$)|("(?:[^"\\]|\\.)*"?)|(%[\w.\-]+)|\b((?:bf16|f8\w*|f4\w*|[fsuc]\d+|pred|token|opaque)(?:\[[^\]]*\])(?:\{[^}]*\})?|token\[\])|\b(ENTRY|HloModule|ROOT|true|false)\b|([\w\-]+)(?=\()|([\w]+)(?==)|\b(-?\d[\d.e+\-]*)\b/g;
const kinds = ['comment', 'string', 'name', 'shape', 'keyword', 'opcode', 'attribute', 'number'];

export interface Token {
  text: string;
  kind: string;
}

export function tokens(line: string): Token[] {
  const result: Token[] = [];
  let at = 0;
  for (const match of line.matchAll(pattern)) {
    const from = match.index ?? 0;
    if (from > at) result.push({ text: line.slice(at, from), kind: '' });
    let kind = '';
    for (let k = 0; k < kinds.length; k++) {
      if (match[k + 1] !== undefined) {
        kind = kinds[k];
        break;
      }
    }
    result.push({ text: match[0], kind });
    at = from + match[0].length;
  }
  if (at < line.length) result.push({ text: line.slice(at), kind: '' });
  return result;
}

/** A line as elements; `jump` makes its names links. */
export function coloured(line: string, jump: ((name: string) => void) | null): (HTMLElement | string)[] {
  return tokens(shorten(line, longest_text)).map((token) => {
    const text = visible(shorten(token.text, 1500));
    if (token.kind === 'name' && jump) {
      return h('a', {
        class: 't-name',
        role: 'link',
        tabIndex: -1,
        onclick: (event: Event) => {
          event.stopPropagation();
          jump(token.text);
        },
      }, text);
    }
    return token.kind ? h('span', { class: 't-' + token.kind }, text) : text;
  });
}

export class TextView implements View {
  readonly name = 'text' as const;
  readonly element: HTMLElement;
  private list: VirtualList;
  private at: StateRef | null = null;
  private total = 0;
  private lines = new Map<number, { lines: string[]; ids: (Id | null)[] }>();
  private asked = new Set<number>();
  private selected: Id | null = null;

  constructor(private host: Host) {
    this.list = virtual_list(20, (index) => this.row(index), { class: 'virtual code', role: 'document', 'aria-label': 'HLO text' });
    this.element = h('section', { class: 'view text-view', 'aria-label': 'HLO text' }, this.list.element);
  }

  async show(place: Place, turn: number): Promise<void> {
    if (!this.at || !same_state(this.at, place.at)) {
      const top = this.list.first(), stay = this.at?.module === place.at.module && place.op === null;
      this.at = place.at;
      this.lines.clear();
      this.asked.clear();
      const first = await this.fetch(place.at, stay ? Math.floor(top / window_lines) * window_lines : 0);
      if (same_state(this.at, place.at)) this.list.set(first); // also where another op of this state was selected meanwhile
      if (!this.host.session.fresh(turn)) return;
      if (!stay) this.list.show(0, 'nearest');
    }
    this.selected = place.op;
    if (place.op !== null) {
      const line = await this.line_of(place.op, turn);
      if (line !== null && this.host.session.fresh(turn)) this.list.show(line, 'nearest'), this.centre(line);
    }
    this.list.refresh();
  }

  private centre(line: number): void {
    const first = this.list.first();
    if (line < first + 2 || line > first + this.list.visible() - 3) this.list.show(line);
  }

  private async fetch(at: StateRef, from: number): Promise<number> {
    this.asked.add(from);
    const text = await this.host.session.engine.text({ at, from, lines: window_lines });
    if (same_state(at, this.at)) {
      this.lines.set(from, text);
      this.total = text.total;
    }
    return text.total;
  }

  private async line_of(id: Id, turn: number): Promise<number | null> {
    for (const [from, piece] of this.lines) {
      const k = piece.ids.indexOf(id);
      if (k >= 0) return from + k;
    }
    if (this.host.session.can_do) {
      const { hits } = await this.host.session.engine.search({ at: this.at as StateRef, query: `id:${id}`, limit: 1 });
      if (hits.length) return hits[0].line;
    }
    for (let from = 0; from < this.total && this.host.session.fresh(turn); from += window_lines) {
      if (!this.lines.has(from)) await this.fetch(this.at as StateRef, from);
      const k = this.lines.get(from)?.ids.indexOf(id) ?? -1;
      if (k >= 0) return from + k;
    }
    return null;
  }

  private row(index: number): HTMLElement {
    const from = Math.floor(index / window_lines) * window_lines, piece = this.lines.get(from);
    if (!piece) {
      if (!this.asked.has(from) && this.at) this.fetch(this.at, from).then(() => this.list.refresh(), (error) => this.host.failed(error));
      return h('div', { class: 'line faint' }, h('span', { class: 'number' }, index + 1), '…');
    }
    const line = piece.lines[index - from] ?? '', id = piece.ids[index - from] ?? null;
    return h(
      'div',
      {
        class: 'line' + (id !== null && id === this.selected ? ' selected' : ''),
        onclick: () => {
          if (id !== null) void this.host.select(id, this.defined(line));
        },
      },
      h('span', { class: 'number', 'aria-hidden': 'true' }, index + 1),
      h(
        'bdi',
        { class: 'code-line', dir: 'ltr' },
        ...coloured(line, (name) => {
          void this.jump(name);
        }),
      ),
    );
  }

  private defined(line: string): string {
    return line.match(/^\s*(?:ROOT\s+)?%?([\w.\-]+)\s*=/)?.[1] ?? '';
  }

  private async jump(name: string): Promise<void> {
    try {
      const wanted = name.replace(/^%/, '');
      for (const [, piece] of this.lines) {
        const k = piece.lines.findIndex((line, i) => piece.ids[i] !== null && this.defined(line) === wanted);
        if (k >= 0) {
          await this.host.select(piece.ids[k], wanted);
          return;
        }
      }
      const id = await this.host.session.by_name(this.at as StateRef, wanted);
      if (id !== null) await this.host.select(id, wanted);
      else this.host.say(`${wanted} is no instruction`);
    } catch (error) {
      this.host.failed(error);
    }
  }

  key(event: KeyboardEvent): boolean {
    if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return false;
    const step = event.key === 'ArrowDown' ? 1 : -1;
    for (const [from, piece] of this.lines) {
      const k = piece.ids.indexOf(this.selected);
      if (k < 0 || this.selected === null) continue;
      for (let i = k + step; i >= 0 && i < piece.ids.length; i += step) {
        const id = piece.ids[i];
        if (id !== null) {
          void this.host.select(id, this.defined(piece.lines[i]));
          return true;
        }
      }
      void from;
    }
    return false;
  }
}
