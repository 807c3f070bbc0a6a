// Buffers over time: how much is live at each place of the schedule, and what is live at the peak.
import { Memory } from '../protocol';
import { chart, memory_chart } from '../charts';
import { add, bytes, fill, foreign, h, link, s } from '../dom';
import { Host, View } from '../host';
import { Place } from '../session';

const wide = 1000;

export class MemoryView implements View {
  readonly name = 'memory' as const;
  readonly element = h('section', { class: 'view document', 'aria-label': 'Memory' });
  private made = '';
  constructor(private host: Host) {}

  async show(place: Place, turn: number): Promise<void> {
    const key = JSON.stringify(place.at);
    if (this.made === key) return;
    const memory = await this.host.session.engine.memory({ at: place.at });
    if (!this.host.session.fresh(turn)) return;
    this.made = key;
    const peak_place = memory.curve.reduce((best, one) => one.bytes > best.bytes ? one : best, memory.curve[0] ?? { place: 0, bytes: 0 }).place;
    const page = h(
      'div',
      { class: 'page wide' },
      h('h2', null, `Peak ${bytes(memory.peak_bytes)}`, memory.estimated ? h('span', { class: 'faint' }, ' estimated from this stage') : ''),
    );
    if (memory.at !== null) {
      add(
        page,
        h(
          'p',
          null,
          'at ',
          link('the op that runs then', () => {
            void this.host.select(memory.at, '', { view: 'graph' });
          }),
        ),
      );
    }
    const sums: [string, number][] = [['allocated', memory.allocated_bytes], ['arguments', memory.arguments_bytes], ['constants', memory.constants_bytes], [
      'outputs',
      memory.outputs_bytes,
    ], ['temporaries', memory.temporaries_bytes]];
    add(page, h('div', { class: 'cost' }, ...sums.map(([name, n]) => h('span', null, name + ' ', h('b', null, bytes(n))))));
    for (const note of memory.notes.slice(0, 20)) add(page, h('p', { class: 'faint' }, foreign(note, 400)));
    add(
      page,
      chart((wide) => memory_chart(memory, wide)),
      h('h3', null, 'Live at the peak, largest first'),
      this.table(memory, peak_place),
      h('h3', null, 'From when to when'),
      this.bars(memory),
    );
    fill(this.element, page);
  }

  private table(memory: Memory, peak: number): HTMLElement {
    const live = memory.live.filter((one) => one.from <= peak && one.to >= peak).sort((a, b) => b.bytes - a.bytes),
      shown = live.length ? live : [...memory.live].sort((a, b) => b.bytes - a.bytes);
    const total = shown.reduce((sum, one) => sum + one.bytes, 0);
    return h(
      'table',
      { class: 'table' },
      h('thead', null, h('tr', null, ...['buffer', 'bytes', 'share', 'source'].map((t) => h('th', { scope: 'col' }, t)))),
      h(
        'tbody',
        null,
        ...shown.slice(0, 200).map((one) =>
          h(
            'tr',
            null,
            h(
              'td',
              null,
              one.id !== null
                ? link(foreign(one.name, 60), () => {
                  void this.host.select(one.id, one.name, { view: 'graph' });
                })
                : foreign(one.name, 60),
            ),
            h('td', { class: 'n' }, bytes(one.bytes)),
            h('td', { class: 'n' }, total ? (100 * one.bytes / total).toFixed(1) + ' %' : ''),
            h('td', null, foreign(one.source, 100)),
          )
        ),
      ),
    );
  }

  private bars(memory: Memory): HTMLElement {
    const largest = [...memory.live].sort((a, b) => b.bytes - a.bytes).slice(0, 60).sort((a, b) => a.from - b.from), row = 14;
    const picture = s('svg', {
      viewBox: `0 0 ${wide} ${largest.length * row + 4}`,
      class: 'chart',
      role: 'img',
      'aria-label': 'The sixty largest buffers over the schedule',
    });
    const most = largest.reduce((m, one) => Math.max(m, one.bytes), 1);
    largest.forEach((one, i) => {
      const x = one.from / Math.max(1, memory.places) * wide, w = Math.max(2, (one.to - one.from + 1) / Math.max(1, memory.places) * wide);
      const bar = s(
        'rect',
        { x, y: i * row + 2, width: w, height: row - 3, class: 'bar', 'fill-opacity': 0.3 + 0.7 * Math.sqrt(one.bytes / most) },
        s('title', {}, `${one.name.slice(0, 200)}: ${bytes(one.bytes)}, places ${one.from} to ${one.to}`),
      );
      bar.addEventListener('click', () => {
        if (one.id !== null) void this.host.select(one.id, one.name, { view: 'graph' });
      });
      picture.append(
        bar,
        s('text', { x: Math.min(x + 4, wide - 300), y: i * row + row - 4, class: 'chart-text' }, `${one.name.slice(0, 50)} ${bytes(one.bytes)}`),
      );
    });
    return h('div', { class: 'chart-box' }, picture as unknown as HTMLElement);
  }
}
