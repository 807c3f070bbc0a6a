// Right: everything about one op.
import { Id, Measured, Op, StateRef } from './protocol';
import { add, amount, button, bytes, fill, foreign, h, link, plural, seconds, section } from './dom';
import { Host } from './host';
import { Place } from './session';
import { show_stage } from './stage';
import { coloured } from './views/text';

const most = 60; // entries of a list shown at once

export class OpPanel {
  readonly element = h('aside', { class: 'panel', 'aria-label': 'Op' });
  private turn = 0; // of what is shown: what was asked for earlier comes too late
  constructor(private host: Host) {}

  async show(place: Place, turn: number): Promise<void> {
    const shown = ++this.turn;
    if (place.op === null) {
      this.empty();
      if (this.host.session.modules.length) void show_stage(this.host, place, this.element, () => this.turn === shown).catch(() => undefined); // the page does without
      return;
    }
    if (!this.host.session.can_do) {
      this.without_engine(place);
      return;
    }
    let op: Op;
    try {
      op = await this.host.session.engine.op({ at: place.at, id: place.op });
    } catch {
      if (this.host.session.fresh(turn)) await this.gone(place);
      return;
    }
    if (this.host.session.fresh(turn)) this.draw(op, place.at);
  }

  private empty(): void {
    fill(
      this.element,
      h('div', { class: 'pane-head' }, h('b', null, 'Op')),
      h('p', { class: 'faint' }, 'Click an op to see its shape, operands, source line, history, fusion, buffers and cost. Double click opens a group. '),
      h('p', { class: 'faint' }, 'Press ', h('kbd', null, '?'), ' for all keys, ', h('kbd', null, '/'), ' to search.'),
    );
  }

  private without_engine(place: Place): void {
    fill(
      this.element,
      h('div', { class: 'pane-head' }, foreign(place.name, 60, 'strong')),
      h('p', { class: 'faint' }, 'This page was made without the engine: what it knows of one op is in the text. '),
      button('Show in text', () => {
        void this.host.go({ view: 'text' });
      }),
    );
  }

  /** Not in this stage: what became of it, or where it came from. */
  private async gone(place: Place): Promise<void> {
    fill(
      this.element,
      h('div', { class: 'pane-head' }, foreign(place.name || 'op', 60, 'strong')),
      h('p', null, `is not in ${this.host.session.stage_words(place.at)}.`),
      button('Follow it through the stages (f)', () => {
        void this.host.go({ view: 'follow' });
      }),
    );
  }

  private ops(list: { id: Id | null; name: string; shape?: string }[], at: StateRef): HTMLElement {
    const items = list.slice(0, most).map((one) =>
      h(
        'li',
        null,
        one.id !== null ? this.to(one.id, one.name, at) : foreign(one.name),
        one.shape ? h('span', { class: 'faint' }, ' ', foreign(one.shape, 60)) : null,
      )
    );
    const rest = list.length - most;
    return h('ul', { class: 'ops' }, ...items, rest > 0 ? h('li', { class: 'faint' }, `… and ${rest} more`) : null);
  }

  private to(id: Id, name: string, at?: StateRef): HTMLElement {
    return link(foreign(name, 60), () => {
      void this.host.select(id, name, at ? { at } : {});
    });
  }

  private draw(op: Op, at: StateRef): void {
    const scroll = this.element.scrollTop;
    const fact = (name: string, value: string | HTMLElement | null) =>
      value === null || value === ''
        ? null
        : h('div', { class: 'fact' }, h('span', { class: 'faint' }, name), typeof value === 'string' ? foreign(value, 400) : value);
    fill(
      this.element,
      h('div', { class: 'pane-head' }, h('h2', null, foreign(op.name, 80))),
      h(
        'div',
        { class: 'facts' },
        fact('opcode', op.opcode),
        fact('shape', op.shape),
        fact('layout', op.layout),
        fact('in', op.computation),
        fact('comes from', op.source.op_name),
      ),
      op.source.frames.length
        ? h(
          'ol',
          { class: 'frames', 'aria-label': 'Source, innermost frame first' },
          ...op.source.frames.slice(0, 12).map((frame) => h('li', null, foreign(frame, 160))),
        )
        : null,
      h(
        'div',
        { class: 'buttons' },
        button('Follow (f)', () => {
          void this.host.go({ view: 'follow' });
        }),
        button('Text (t)', () => {
          void this.host.go({ view: 'text' });
        }),
        button('Graph (g)', () => {
          void this.host.go({ view: 'graph' });
        }),
      ),
      this.cost(op),
      this.measured(op),
      section(plural(op.operand_count, 'operand'), true, this.ops(op.operands, at)),
      section(plural(op.user_count, 'user'), true, this.ops(op.users, at)),
      op.calls.length
        ? section(
          'Calls',
          true,
          h(
            'ul',
            { class: 'ops' },
            ...op.calls.slice(0, most).map((call) =>
              h('li', null, h('span', { class: 'faint' }, call.role, ' '), foreign(call.computation, 60), ` (${plural(call.instructions, 'instruction')})`)
            ),
          ),
        )
        : null,
      op.attributes.length
        ? section('Attributes', op.attributes.length < 12, h('div', { class: 'facts' }, ...op.attributes.slice(0, 200).map((one) => fact(one.name, one.value))))
        : null,
      op.fusion
        ? section(
          'Fusion',
          true,
          h('p', null, 'in ', op.fusion.ids.length ? this.to(op.fusion.ids[0], op.fusion.name) : foreign(op.fusion.name), ' ', foreign(op.fusion.kind)),
          lines(op.fusion.why),
        )
        : null,
      op.why_not.length ? section('Why not fused with …', false, lines(op.why_not)) : null,
      op.history.length ? section(`History (${op.history.length})`, true, this.history(op)) : null,
      op.buffers.length ? section('Buffers', false, lines(op.buffers)) : null,
      op.thunks.length ? section('Thunks', false, lines(op.thunks)) : null,
      op.files.length ? section('Files', false, this.files(op, at)) : null,
      section(
        'As text',
        true,
        h(
          'pre',
          { class: 'code wrap' },
          ...coloured(op.text, (name) => {
            void this.jump(name, at);
          }),
        ),
      ),
    );
    this.element.scrollTop = scroll;
  }

  private async jump(name: string, at: StateRef): Promise<void> {
    try {
      const id = await this.host.session.by_name(at, name);
      if (id !== null) await this.host.select(id, name.replace(/^%/, ''));
    } catch (error) {
      this.host.failed(error);
    }
  }

  /** Of one call: measured first, then what is expected and what is needed at least. */
  private cost(op: Op): HTMLElement | null {
    const c = op.cost, m = op.measured;
    if (!c && !m) return null;
    const turns = (n: number) => n > 1.5 ? `, ${n.toFixed(0)} times` : '';
    return h(
      'div',
      { class: 'cost' },
      m
        ? h(
          'span',
          { class: 'measured', title: m.run },
          'measured ',
          h('b', null, seconds(m.seconds)),
          m.share !== null ? `, ${(100 * m.share).toFixed(1)} %` : '',
          turns(m.turns),
        )
        : null,
      op.expected_seconds !== null ? h('span', { title: 'by what such kernels reach' }, 'expected ', h('b', null, seconds(op.expected_seconds))) : null,
      c
        ? h(
          'span',
          { title: `by the data sheet of ${c.device}` },
          m ? 'at least ' : '≈ ',
          h('b', null, seconds(m ? c.seconds * c.times : c.seconds)),
          c.bound ? `, ${c.bound}-bound` : '',
        )
        : null,
      c ? h('span', null, h('b', null, amount(c.flops)), ' flops') : null,
      c ? h('span', null, h('b', null, bytes(c.bytes)), ' moved') : null,
    );
  }

  private measured(op: Op): HTMLElement | null {
    const kernel = op.measured ? this.kernel(op.measured) : null;
    return kernel && op.measured ? section('Kernel, as measured', true, h('p', { class: 'faint' }, foreign(op.measured.run, 200)), kernel) : null;
  }

  private kernel(m: Measured): HTMLElement | null {
    const k = m.kernel, percent = (share: number) => `${(100 * share).toFixed(1)} %`;
    if (!k && !m.chosen.length) return null;
    const facts: [string, string][] = [];
    if (k) facts.push(['kernel', k.name]);
    if (k && k.grid && k.block) facts.push(['grid', k.grid.join(' × ')], ['block', k.block.join(' × ')]);
    if (k && k.registers !== null) {
      facts.push(['registers', String(k.registers)], ['shared', `${bytes(k.static_shared_bytes ?? 0)}, ${bytes(k.dynamic_shared_bytes ?? 0)} at launch`]);
    }
    if (k && k.occupancy !== null) facts.push(['occupancy', `at most ${percent(k.occupancy)}`]);
    if (k && k.estimated_occupancy !== null) facts.push(['data sheet', `${percent(k.estimated_occupancy)}${k.limiter ? `, limited by ${k.limiter}` : ''}`]);
    if (m.ambiguous_seconds > 0) facts.push(['ambiguous', `${seconds(m.ambiguous_seconds)} of kernels that may be others', too: split evenly`]);
    return h(
      'div',
      null,
      h(
        'div',
        { class: 'facts kernel' },
        ...facts.map(([name, value]) => h('div', { class: 'fact' }, h('span', { class: 'faint' }, name), foreign(value, 400))),
      ),
      m.chosen.length ? h('p', { class: 'faint' }, 'What the autotuner chose') : null,
      m.chosen.length ? lines(m.chosen) : null,
    );
  }

  private history(op: Op): HTMLElement {
    return h(
      'ol',
      { class: 'history' },
      ...op.history.slice(0, 120).map((one) =>
        h(
          'li',
          null,
          link(this.host.session.stage_words({ module: this.host.session.place.at.module, state: one.state }), () => {
            void this.host.go({ at: { module: this.host.session.place.at.module, state: one.state } });
          }),
          ' ',
          h('b', null, foreign(one.what, 60)),
          one.name ? h('span', null, ' as ', foreign(one.name, 60)) : null,
          one.rules.length ? h('span', { class: 'rule' }, ' ', foreign(one.rules.join(', '), 80)) : null,
          one.before && one.after && one.before !== one.after
            ? h(
              'details',
              null,
              h('summary', { class: 'faint' }, 'before → after'),
              h('pre', { class: 'code wrap gone' }, ...coloured(one.before, null)),
              h('pre', { class: 'code wrap came' }, ...coloured(one.after, null)),
            )
            : null,
        )
      ),
    );
  }

  private files(op: Op, at: StateRef): HTMLElement {
    const place = h('div');
    add(
      place,
      ...op.files.map((file) => {
        const body = h('pre', { class: 'code' }),
          details = h('details', null, h('summary', null, foreign(file.name, 80), h('span', { class: 'faint' }, ` ${bytes(file.bytes)}`)), body);
        details.addEventListener('toggle', () => {
          if (!details.open || body.textContent) return;
          this.host.engine.file({ module: at.module, name: file.name }).then(({ text }) => {
            body.textContent = text.length > 400000 ? text.slice(0, 400000) + '\n… cut here' : text;
          }, (error) => this.host.failed(error));
        });
        return details;
      }),
    );
    return place;
  }
}

function lines(list: string[]): HTMLElement {
  return h(
    'ul',
    { class: 'lines' },
    ...list.slice(0, most).map((text) => h('li', null, foreign(text, 600))),
    list.length > most ? h('li', { class: 'faint' }, `… and ${list.length - most} more`) : null,
  );
}
