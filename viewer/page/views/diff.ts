// What differs between two stages, as a list whose entries jump, with each op's line before and after.
import { Change, ModuleInfo, StateRef } from '../protocol';
import { add, fill, foreign, h, link, plural } from '../dom';
import { Host, stage_name, View } from '../host';
import { Place, Session } from '../session';
import { coloured } from './text';

const most = 400; // entries at once; `more` adds as many

/** A picker of a stage: any of any module. */
export function stage_picker(session: Session, at: StateRef, label: string, pick: (at: StateRef) => void): HTMLElement {
  const number = h('input', {
    type: 'text',
    inputmode: 'numeric',
    pattern: '[0-9]+',
    class: 'stage-number',
    value: session.number_of(at),
    'aria-label': label,
    title: 'as the files and the command line number it',
    onchange: () => {
      const said = number.value.trim();
      if (!/^\d{1,9}$/.test(said)) {
        number.value = session.number_of(at);
        return;
      }
      // Where files have numbers, 41 is 0041.
      void session.numbered(at.module, session.number_of(at).length >= 4 ? said.padStart(4, '0') : said).then(pick);
    },
  });
  const many = session.modules.length > 1
    ? h(
      'select',
      {
        'aria-label': `${label}: module`,
        onchange: () => {
          const module = Number(many?.value);
          void session.in_module(module, null).then(pick);
        },
      },
      ...session.modules.map((m: ModuleInfo) =>
        h('option', { value: String(m.module), selected: m.module === at.module }, `${m.module}: ${m.name.slice(0, 60)}`)
      ),
    )
    : null;
  return h('span', { class: 'stage-picker' }, h('span', { class: 'faint' }, label, ' '), many, number);
}

export class DiffView implements View {
  readonly name = 'diff' as const;
  readonly element = h('section', { class: 'view document', 'aria-label': 'Changes' });
  private made = '';
  constructor(private host: Host) {}

  async show(place: Place, turn: number): Promise<void> {
    const session = this.host.session, base = session.base(place), key = JSON.stringify([base, place.at]);
    if (key === this.made) return;
    if (!base) {
      this.made = key;
      fill(this.element, h('p', { class: 'empty' }, 'The first stage has none before it. → goes to the next one.'));
      return;
    }
    const [{ same, changes, note }, row] = await Promise.all([session.engine.diff({ a: base, b: place.at }), session.row_of(place.at)]);
    if (!session.fresh(turn)) return;
    this.made = key;
    const head = h(
      'div',
      { class: 'toolbar' },
      stage_picker(session, base, 'from', (at) => {
        void this.host.go({ against: at });
      }),
      ' → ',
      stage_picker(session, place.at, 'to', (at) => {
        void this.host.go({ at });
      }),
      row && !place.against ? h('span', null, ' by ', foreign(row.pipeline + '/' + row.pass, 80, 'strong')) : null,
    );
    const counts = new Map<string, number>();
    for (const change of changes) counts.set(change.kind, (counts.get(change.kind) ?? 0) + Math.max(1, change.count));
    const page = h(
      'div',
      { class: 'page wide' },
      h('h2', null, same ? 'Nothing differs' : [...counts].map(([kind, n]) => `${n} ${kind}`).join(', ')),
      note ? h('p', { class: 'faint' }, foreign(note, 600)) : null,
    );
    const list = h('ol', { class: 'changes' });
    let shown = 0;
    const more = h('button', { type: 'button', onclick: () => step() }, 'More');
    const step = () => {
      for (const change of changes.slice(shown, shown + most)) add(list, entry(this.host, change, base, place.at));
      shown += most;
      more.hidden = shown >= changes.length;
    };
    step();
    add(page, list, more);
    fill(this.element, head, page);
    this.element.scrollTop = 0;
  }
}

function entry(host: Host, change: Change, base: StateRef, at: StateRef): HTMLElement {
  const here = change.kind === 'removed' ? base : at, id = change.kind === 'removed' ? change.other ?? change.id : change.id;
  const jump = (view: 'graph' | 'text') => {
    void host.go({ at: here, op: id, name: change.name, view, against: null });
  };
  return h(
    'li',
    { class: 'change ' + change.kind },
    h('span', { class: 'mark' }, { added: '+', removed: '−', changed: '~', moved: '→', module: '∗' }[change.kind] ?? '·'),
    ' ',
    id !== null ? link(foreign(change.name, 80), () => jump('graph')) : foreign(change.name, 80),
    ' ',
    change.count > 1 ? h('span', { class: 'count' }, `×${change.count}`) : null,
    h('span', { class: 'faint' }, ' ', foreign(change.place, 60)),
    change.what.length ? h('span', null, ' ', foreign(change.what.join(', '), 160)) : null,
    change.rules.length ? h('span', { class: 'rule' }, ' ', foreign(change.rules.join(', '), 100)) : null,
    change.before || change.after
      ? h(
        'div',
        { class: 'twin' },
        change.before ? h('pre', { class: 'code wrap gone' }, ...coloured(change.before, null)) : null,
        change.after ? h('pre', { class: 'code wrap came' }, ...coloured(change.after, null)) : null,
      )
      : null,
  );
}

/** Rewrite by rewrite inside of the pass that made this stage: what each rule did, and the module behind it. */
export class RewritesView implements View {
  readonly name = 'rewrites' as const;
  readonly element = h('section', { class: 'view document', 'aria-label': 'Rewrites of the pass' });
  private made = '';
  private count = -1;
  private total = 0;
  private row: { module: number; row: number; at: StateRef } | null = null;
  constructor(private host: Host) {}

  async show(place: Place, turn: number): Promise<void> {
    const session = this.host.session, key = JSON.stringify(place.at);
    if (this.ready(place)) return;
    const row = await session.row_of(place.at);
    if (!row) {
      this.made = key;
      this.row = null;
      fill(this.element, h('p', { class: 'empty' }, 'No pass made this stage. Choose one at the left.'));
      return;
    }
    const { rewrites, atomic } = await session.engine.rewrites({ module: place.at.module, row: row.row });
    if (!session.fresh(turn)) return;
    this.made = key;
    this.count = -1;
    this.total = rewrites.length;
    this.inside = null;
    this.row = { module: place.at.module, row: row.row, at: place.at };
    const list = h('ol', { class: 'changes', start: 1 });
    for (const one of rewrites.slice(0, 3000)) {
      add(
        list,
        h(
          'li',
          { class: 'rewrite', data: { index: String(one.index) } },
          link(foreign(one.rule, 80, 'rule'), () => {
            void this.to(one.index);
          }),
          ' ',
          foreign(one.text, 400),
          h(
            'div',
            { class: 'faint' },
            ...one.ids.slice(0, 8).flatMap((op, i) => [
              i ? ' ' : '',
              op.id !== null
                ? link(foreign(op.name, 50), () => {
                  void this.host.go({ op: op.id, name: op.name, view: 'graph' });
                })
                : foreign(op.name, 50),
            ]),
          ),
          this.before_after(one.index),
        ),
      );
    }
    fill(
      this.element,
      h(
        'div',
        { class: 'toolbar' },
        h('button', {
          type: 'button',
          title: '[',
          onclick: () => {
            void this.step(-1);
          },
        }, '◀ rewrite'),
        h('button', {
          type: 'button',
          title: ']',
          onclick: () => {
            void this.step(1);
          },
        }, 'rewrite ▶'),
        h('span', null, foreign(row.pass, 60, 'strong'), ` did ${plural(rewrites.length, 'rewrite')}`),
        h('span', { class: 'faint', id: 'rewrite-at' }),
      ),
      h(
        'div',
        { class: 'page wide' },
        atomic ? h('p', { class: 'faint' }, 'All is one rewrite: ', foreign(atomic, 300)) : null,
        rewrites.length ? list : h('p', null, 'The recording has no single rewrites of this pass. '),
        rewrites.length > 3000 ? h('p', { class: 'faint' }, `The first 3000 of ${rewrites.length} are listed.`) : null,
      ),
    );
  }

  /** What one rewrite did: the difference between the modules before and behind it. */
  private before_after(index: number): HTMLElement {
    const list = h('ol', { class: 'changes' }), details = h('details', null, h('summary', { class: 'faint' }, 'before → after'), list), row = this.row;
    details.addEventListener('toggle', () => {
      if (!details.open || list.childElementCount || !row) return;
      void (async () => {
        const engine = this.host.engine, states: StateRef[] = [];
        for (const count of [index - 1, index]) states.push((await engine.rewrite_state({ module: row.module, row: row.row, count })).at);
        const { changes } = await engine.diff({ a: states[0], b: states[1] });
        fill(list, ...changes.slice(0, most).map((change) => entry(this.host, change, states[0], states[1])));
        if (!changes.length) fill(list, 'Nothing that the text shows.');
      })().catch((error) => this.host.failed(error));
    });
    return details;
  }

  private inside: StateRef | null = null; // where the last step by a rewrite led

  /** The place is the pass's stage, or inside of it. */
  ready(place: Place): boolean {
    if (this.inside?.module === place.at.module) {
      this.count = place.at.state;
      return true;
    } // stepped there by other keys
    return JSON.stringify(place.at) === this.made;
  }

  async step(by: number): Promise<void> {
    await this.to(Math.max(0, Math.min(this.total, (this.count < 0 ? (by > 0 ? 0 : this.total) : this.count) + by)));
  }

  /** The module behind so many rewrites, as the graph against the stage before the pass. */
  private async to(count: number): Promise<void> {
    if (!this.row) return;
    try {
      const { at } = await this.host.engine.rewrite_state({ module: this.row.module, row: this.row.row, count });
      this.count = count;
      await this.host.reload();
      this.inside = at;
      for (const item of this.element.querySelectorAll<HTMLElement>('.rewrite')) item.classList.toggle('here', Number(item.dataset.index) === count);
      const where = this.element.querySelector('#rewrite-at');
      if (where) where.textContent = ` — shown after ${count} of ${this.total}`;
      await this.host.go({ at, view: 'graph', op: null, name: '', against: null });
    } catch (error) {
      this.host.failed(error);
    }
  }
}

/** One op through all stages: which it was, what happened. */
export class FollowView implements View {
  readonly name = 'follow' as const;
  readonly element = h('section', { class: 'view document', 'aria-label': 'One op through all stages' });
  constructor(private host: Host) {}

  async show(place: Place, turn: number): Promise<void> {
    const session = this.host.session, page = h('div', { class: 'page wide' });
    if (place.op === null) {
      fill(this.element, h('p', { class: 'empty' }, 'Choose an op first: click one in the graph or the text.'));
      return;
    }
    const op = await session.engine.op({ at: place.at, id: place.op });
    const states = session.info(place.at.module)?.states ?? 0, strip = h('div', { class: 'strip', role: 'list' });
    if (!session.fresh(turn)) return;
    fill(this.element, page);
    add(
      page,
      h('h2', null, foreign(op.name, 100), h('span', { class: 'faint' }, ` from ${stage_name(this.host, place.at)}`)),
      h(
        'p',
        { class: 'faint' },
        'A cell a stage: filled where the op is there itself, lighter where a successor replaces it, grey where it is not known. Click one to go there.',
      ),
      strip,
      h(
        'ol',
        { class: 'history' },
        ...op.history.map((one) =>
          h(
            'li',
            null,
            link(this.host.session.stage_words({ module: place.at.module, state: one.state }), () => {
              void this.host.go({ at: { module: place.at.module, state: one.state } });
            }),
            ' ',
            h('b', null, foreign(one.what, 80)),
            one.name ? h('span', null, ' as ', foreign(one.name, 80)) : null,
            one.rules.length ? h('span', { class: 'rule' }, ' ', foreign(one.rules.join(', '), 120)) : null,
            h(
              'div',
              { class: 'twin' },
              one.before ? h('pre', { class: 'code wrap gone' }, ...coloured(one.before, null)) : null,
              one.after ? h('pre', { class: 'code wrap came' }, ...coloured(one.after, null)) : null,
            ),
          )
        ),
      ),
    );
    for (let state = 0; state < Math.min(states, 1500); state++) {
      const found: { ids: number[] | null } = await session.engine.follow({ at: place.at, id: place.op, to: state });
      const ids = found.ids;
      if (!session.fresh(turn)) return;
      const kind = ids === null ? 'unknown' : !ids.length ? 'none' : ids.includes(place.op) ? 'self' : 'heir';
      add(
        strip,
        h('button', {
          type: 'button',
          class: 'cell ' + kind + (state === place.at.state ? ' here' : ''),
          title: `${this.host.session.stage_words({ module: place.at.module, state })}: ${
            { unknown: 'not known', none: 'not there', self: 'there', heir: `${ids?.length} successors` }[kind]
          }`,
          'aria-label': `${this.host.session.stage_words({ module: place.at.module, state })}, ${kind}`,
          onclick: () => {
            const id = ids?.[0] ?? null;
            void this.host.go({ at: { module: place.at.module, state }, op: id, name: id === place.op ? place.name : '', view: 'graph', against: null });
          },
        }),
      );
    }
  }
}
