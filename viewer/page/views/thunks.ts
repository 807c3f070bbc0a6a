// Thunks by stream, in the order in which the host starts them: a lane a stream, bars by time, and the list below it.
import { Thunks } from '../protocol';
import { fill, foreign, h, link, plural, seconds } from '../dom';
import { Host, View } from '../host';
import { Place } from '../session';
import { virtual_list, VirtualList } from '../virtual';
import { hex } from '../graph/colours';
import { is_dark } from '../graph/canvas';

const row_height = 40, label_height = 14;

/** Whose thunks and streams they are. */
export function where_from(answer: Thunks): HTMLElement {
  return h(
    'span',
    { class: 'faint' },
    answer.from ? h('span', null, 'thunks and streams of ', foreign(answer.from, 120)) : 'our own thunks, on the streams that XLA\u2019s rule gives',
    answer.estimated ? ', in post order: the stage has no schedule' : '',
    '.',
  );
}

export class ThunksView implements View {
  readonly name = 'thunks' as const;
  readonly element: HTMLElement;
  private head = h('div', { class: 'toolbar' });
  private canvas = h('canvas', {
    class: 'thunk-canvas',
    role: 'img',
    'aria-label': 'Thunks over time, a lane a stream; wheel zooms, drag pans, click shows the op',
  });
  private list: VirtualList;
  private thunks: Thunks['thunks'] = [];
  private streams: string[] = [];
  private from = 0;
  private to = 1;
  private end = 1;
  private made = '';
  private hues = new Map<string, number>();

  constructor(private host: Host) {
    this.list = virtual_list(24, (i) => this.row(i), { class: 'virtual', role: 'list', 'aria-label': 'Thunks in order' });
    this.element = h('section', { class: 'view search-view', 'aria-label': 'Thunks' }, this.head, this.canvas, this.list.element);
    new ResizeObserver(() => this.paint()).observe(this.canvas);
    let drag = 0;
    this.canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      const box = this.canvas.getBoundingClientRect(),
        at = this.from + (event.clientX - box.left) / box.width * (this.to - this.from),
        k = Math.exp(event.deltaY / 300);
      this.from = Math.max(0, at - (at - this.from) * k);
      this.to = Math.min(this.end, at + (this.to - at) * k);
      this.paint();
    }, { passive: false });
    this.canvas.addEventListener('pointermove', (event) => {
      if (!(event.buttons & 1)) return;
      const by = -event.movementX / this.canvas.clientWidth * (this.to - this.from), room = this.to - this.from;
      drag += Math.abs(event.movementX);
      this.from = Math.max(0, Math.min(this.end - room, this.from + by));
      this.to = this.from + room;
      this.paint();
    });
    this.canvas.addEventListener('pointerdown', (event) => {
      drag = 0;
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener('pointerup', (event) => {
      if (drag > 3) return;
      const box = this.canvas.getBoundingClientRect(),
        time = this.from + (event.clientX - box.left) / box.width * (this.to - this.from),
        stream: string | undefined = this.streams[Math.floor((event.clientY - box.top) / row_height)];
      const hit = this.thunks.filter((t) => t.stream === stream && t.start <= time && t.start + t.seconds >= time).pop();
      if (hit) {
        this.list.show(this.thunks.indexOf(hit));
        if (hit.id !== null) void this.host.select(hit.id, hit.name);
      }
    });
  }

  theme(): void {
    this.paint();
  }

  async show(place: Place, turn: number): Promise<void> {
    const key = JSON.stringify(place.at);
    if (this.made === key) {
      this.list.refresh();
      return;
    }
    const answer = await this.host.session.engine.thunks({ at: place.at });
    if (!this.host.session.fresh(turn)) return;
    this.made = key;
    this.thunks = answer.thunks;
    this.streams = answer.streams;
    this.end = Math.max(
      1e-9,
      ...this.streams.map((stream) => this.thunks.reduce((end, t) => t.stream === stream ? Math.max(end, t.start + t.seconds) : end, 0)),
    );
    this.from = 0;
    this.to = this.end;
    fill(
      this.head,
      this.thunks.length
        ? `${plural(this.thunks.length, 'thunk')} on ${plural(this.streams.length, 'stream')}, ${seconds(this.end)} at least; `
        : 'This stage has no thunks: the last stage has them.',
      this.thunks.length ? where_from(answer) : null,
      ...answer.notes.map((note) => h('span', { class: 'faint' }, ' ', foreign(note, 400))),
    );
    this.canvas.hidden = !this.thunks.length;
    this.canvas.style.height = `${Math.min(12, Math.max(1, this.streams.length)) * row_height + 18}px`;
    this.list.set(this.thunks.length);
    this.paint();
  }

  private colour(kind: string): string {
    let hue = this.hues.get(kind);
    if (hue === undefined) this.hues.set(kind, hue = (this.hues.size * 67 + 205) % 360);
    return is_dark() ? hex(hue, 45, 38) : hex(hue, 65, 74);
  }

  private paint(): void {
    const ratio = window.devicePixelRatio || 1, box = this.canvas.getBoundingClientRect();
    if (box.width < 4) return;
    this.canvas.width = box.width * ratio;
    this.canvas.height = box.height * ratio;
    const c = this.canvas.getContext('2d') as CanvasRenderingContext2D,
      style = getComputedStyle(this.canvas),
      scale = box.width / Math.max(1e-12, this.to - this.from);
    c.scale(ratio, ratio);
    c.font = '11px system-ui, "DejaVu Sans", sans-serif';
    c.textBaseline = 'middle';
    c.fillStyle = style.getPropertyValue('--faint');
    this.streams.forEach((stream, lane) => c.fillText(stream, 2, lane * row_height + label_height / 2 + 1));
    for (const t of this.thunks) {
      const x = (t.start - this.from) * scale, w = Math.max(0.6, t.seconds * scale), y = this.streams.indexOf(t.stream) * row_height + label_height;
      if (x + w < 0 || x > box.width) continue;
      c.fillStyle = this.colour(t.kind);
      c.fillRect(x, y, w > 3 ? w - 0.7 : w, row_height - label_height - 4);
      if (w > 50) {
        c.fillStyle = style.getPropertyValue('--text');
        c.fillText(t.name.slice(0, Math.floor(w / 7)), Math.max(x, 0) + 4, y + (row_height - label_height) / 2 - 2);
      }
    }
    c.fillStyle = style.getPropertyValue('--faint');
    c.fillText(seconds(this.from), 2, box.height - 8);
    c.textAlign = 'right';
    c.fillText(seconds(this.to), box.width - 2, box.height - 8);
  }

  private row(i: number): HTMLElement {
    const t = this.thunks[i], mark = h('i', { class: 'key' }), indent = h('span', { class: 'indent' });
    mark.style.background = this.colour(t.kind);
    indent.style.width = `${Math.min(10, t.depth) * 12}px`;
    return h(
      'div',
      { class: 'thunk' + (t.id !== null && t.id === this.host.session.place.op ? ' here' : ''), role: 'listitem' },
      h('span', { class: 'number' }, t.index),
      indent,
      mark,
      h('span', { class: 'faint' }, foreign(t.kind, 40)),
      ' ',
      t.id !== null
        ? link(foreign(t.name, 70), () => {
          void this.host.select(t.id, t.name);
        })
        : foreign(t.name, 70),
      h('span', { class: 'spring' }),
      h('span', { class: 'faint' }, `${t.stream} · ${seconds(t.start)} + ${seconds(t.seconds)}${t.kind === 'kAsyncDone' ? ' of waiting' : ''}`),
    );
  }
}
