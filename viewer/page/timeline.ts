// Left: every pass that ran, by nested pipeline, with what it changed and how long it took.
import { Row } from './protocol';
import { button, fill, foreign, h, seconds } from './dom';
import { Host } from './host';
import { Place } from './session';
import { virtual_list, VirtualList } from './virtual';

interface Line {
  row: Row;
  depth: number;
  heading: boolean;
  text: string;
  changed: number;
  state: number | null;
}

export class Timeline {
  readonly element: HTMLElement;
  private list: VirtualList;
  private all: Line[] = [];
  private lines: Line[] = [];
  private only_changed = true;
  private folded = new Set<string>();
  private current = -1;
  private module = -1;
  private summary = h('span', { class: 'faint' });
  private find = button('Find the fault', () => {
    void this.host.find_fault();
  }, { class: 'find-fault', title: 'Runs all stages on the same inputs: which pass, and which operation, changed what the module computes', hidden: true });

  constructor(private host: Host) {
    this.list = virtual_list(24, (index) => this.line(index), { class: 'virtual', role: 'listbox', 'aria-label': 'Passes; enter shows the stage after one' });
    const only = h('input', {
      type: 'checkbox',
      id: 'only-changed',
      checked: true,
      onchange: () => {
        this.only_changed = only.checked;
        this.refilter();
      },
    });
    this.element = h(
      'nav',
      { class: 'timeline', 'aria-label': 'Passes' },
      h('div', { class: 'pane-head' }, h('b', null, 'Passes'), h('label', { for: 'only-changed' }, only, ' only what changed')),
      h('div', { class: 'summary' }, this.summary, h('span', { class: 'spring' }), this.find),
      this.list.element,
    );
    this.list.element.addEventListener('keydown', (event) => {
      const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
      if (!step) return;
      event.preventDefault();
      event.stopPropagation();
      for (let i = this.current_line() + step; i >= 0 && i < this.lines.length; i += step) {
        if (!this.lines[i].heading && this.lines[i].state !== null) {
          this.pick(this.lines[i]);
          return;
        }
      }
    });
  }

  private current_line(): number {
    return this.lines.findIndex((line) => !line.heading && line.state === this.current);
  }

  async show(place: Place): Promise<void> {
    const info = this.host.session.info(place.at.module);
    if (place.at.module !== this.module || info?.source === 'bench') {
      this.module = place.at.module;
      const rows = await this.host.session.rows(place.at.module);
      if (this.module !== place.at.module) return;
      this.all = lines_of(rows);
      const passes = rows.filter((row) => row.kind === 'pass'), changed = passes.filter((row) => row.changed).length;
      const time = rows.reduce((sum, row) => sum + (row.kind === 'pipeline-start' ? 0 : row.microseconds ?? 0), 0);
      this.summary.textContent = `${passes.length} passes · ${changed} changed it${time ? ` · ${seconds(time / 1e6)}` : ''}`;
      this.find.hidden = !this.host.session.can_do || (info?.states ?? 0) < 2;
      this.current = place.at.state;
      this.refilter();
    }
    this.current = place.at.state;
    this.list.refresh();
    const at = this.current_line();
    if (at >= 0) this.list.show(at, 'nearest');
  }

  private refilter(): void {
    const hidden: string[] = [];
    this.lines = this.all.filter((line) => {
      const path = line.row.pipeline;
      if (!line.heading && hidden.some((fold) => path === fold || path.startsWith(fold + '/'))) return false;
      if (line.heading && hidden.some((fold) => path.startsWith(fold + '/'))) return false;
      if (line.heading && this.folded.has(path)) hidden.push(path);
      if (!this.only_changed) return true;
      return line.heading ? line.changed > 0 : line.row.changed || line.row.kind === 'input' || line.row.kind === 'result';
    });
    this.list.set(this.lines.length);
    const at = this.current_line();
    if (at >= 0) this.list.show(at, 'nearest');
  }

  private line(index: number): HTMLElement {
    const line = this.lines[index], row = line.row, indent = h('span', { class: 'indent' });
    indent.style.width = `${Math.min(line.depth, 8) * 12}px`;
    if (line.heading) {
      const folded = this.folded.has(row.pipeline);
      return h(
        'div',
        {
          class: 'pass heading',
          role: 'option',
          'aria-label': `${line.text}, ${folded ? 'folded' : 'open'}, ${line.changed} changed`,
          onclick: () => {
            if (folded) this.folded.delete(row.pipeline);
            else this.folded.add(row.pipeline);
            this.refilter();
          },
        },
        indent,
        h('span', { class: 'fold', 'aria-hidden': 'true' }, folded ? '▸' : '▾'),
        foreign(line.text, 48),
        h('span', { class: 'spring' }),
        line.changed ? h('span', { class: 'count' }, line.changed) : null,
      );
    }
    const here = line.state === this.current;
    const kind = row.disabled ? 'off' : !row.implemented ? 'foreign' : '';
    const delta = row.after - row.before;
    return h(
      'div',
      {
        class: `pass ${row.changed ? 'changed' : 'idle'} ${kind}` + (here ? ' here' : ''),
        role: 'option',
        'aria-selected': String(here),
        title: `${row.name || row.pass}: +${row.added} −${row.removed} ~${row.modified}` + (row.rewrites ? `, ${row.rewrites} rewrites` : '') +
          (row.microseconds !== null ? `, ${seconds(row.microseconds / 1e6)}` : ''),
        onclick: () => this.pick(line),
      },
      indent,
      h('span', { class: 'number' }, row.number !== null ? String(row.number).padStart(4, '0') : line.state ?? ''),
      foreign(line.text, 44),
      h('span', { class: 'spring' }),
      row.changed
        ? h(
          'span',
          { class: 'delta' + (delta < 0 ? ' less' : delta > 0 ? ' more' : '') },
          delta > 0 ? `+${delta}` : delta < 0 ? `−${-delta}` : `~${row.modified || row.added}`,
        )
        : null,
      h('span', { class: 'time' }, row.microseconds !== null && row.microseconds >= 100 ? seconds(row.microseconds / 1e6) : ''),
    );
  }

  private pick(line: Line): void {
    if (line.state === null) return;
    void this.host.go({ at: { module: this.module, state: line.state }, against: null });
  }
}

/** Headings where the pipeline changes, passes under them. */
function lines_of(rows: Row[]): Line[] {
  const lines: Line[] = [], heads = new Map<string, Line>();
  let path = '', state: number | null = null;
  for (const row of rows) {
    if (row.state !== null) state = row.state;
    const depth = row.pipeline ? row.pipeline.split('/').length : 0;
    if (row.kind !== 'input' && row.kind !== 'result' && row.pipeline && row.pipeline !== path) {
      const parts = row.pipeline.split('/'), old = path.split('/');
      let same = 0;
      while (same < parts.length && parts[same] === old[same]) same++;
      for (let k = Math.min(same, parts.length - 1); k < parts.length; k++) {
        const name = parts.slice(0, k + 1).join('/');
        const head: Line = { row: { ...row, pipeline: name }, depth: k, heading: true, text: parts[k], changed: 0, state: null };
        heads.set(name, head);
        lines.push(head);
      }
    }
    path = row.pipeline;
    if (row.kind === 'pipeline-start') continue;
    lines.push({
      row,
      depth,
      heading: false,
      text: row.kind === 'input' ? 'input' : row.kind === 'result' ? row.name || 'result' : row.pass || row.name,
      changed: 0,
      state,
    });
    if (row.changed) {
      for (let k = 1, parts = row.pipeline.split('/'); k <= parts.length; k++) {
        const head = heads.get(parts.slice(0, k).join('/'));
        if (head) head.changed++;
      }
    }
  }
  return lines;
}

/** Bottom: the stages as bars one can drag along; a bar is as high as what its pass changed. */
export class ScrubBar {
  readonly canvas = h('canvas', { class: 'scrub-canvas', tabIndex: 0, role: 'slider', 'aria-label': 'Stage' });
  readonly element: HTMLElement;
  private label = h('span', { class: 'scrub-label', 'aria-live': 'polite' });
  private play_button: HTMLButtonElement;
  private timer = 0;
  private rows: (Row | null)[] = [];
  private states = 0;
  private at = 0;
  private wanted = -1;
  private busy = false;

  constructor(private host: Host) {
    this.play_button = h('button', { type: 'button', title: 'Play (space)', 'aria-label': 'Play', onclick: () => this.play() }, '▶');
    const step = (by: number, text: string, tells: string) =>
      h('button', {
        type: 'button',
        title: tells,
        'aria-label': tells,
        onclick: () => {
          void this.step(by);
        },
      }, text);
    this.element = h(
      'footer',
      { class: 'scrub', 'aria-label': 'Stages' },
      step(-1, '◀', 'Stage before (←)'),
      this.play_button,
      step(1, '▶▏', 'Next stage (→)'),
      this.canvas,
      this.label,
    );
    const jump = (event: PointerEvent) => {
      if (!(event.buttons & 1) || !this.states) return;
      const box = this.canvas.getBoundingClientRect();
      this.scrub(Math.min(this.states - 1, Math.max(0, Math.floor((event.clientX - box.left) / box.width * this.states))));
    };
    this.canvas.addEventListener('pointerdown', (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      jump(event);
    });
    this.canvas.addEventListener('pointermove', jump);
    new ResizeObserver(() => this.paint()).observe(this.canvas);
  }

  async show(place: Place): Promise<void> {
    const rows = await this.host.session.rows(place.at.module);
    const info = this.host.session.info(place.at.module);
    this.states = info?.states ?? 0;
    this.rows = new Array<Row | null>(this.states).fill(null);
    const much = (row: Row | null) => row ? Number(row.changed) + row.added + row.removed + row.modified : -1;
    for (const row of rows) {
      if (row.state !== null && row.kind !== 'pipeline-start' && row.state < this.states && much(row) > much(this.rows[row.state])) {
        this.rows[row.state] = row;
      }
    }
    this.at = place.at.state;
    const row = this.rows[this.at];
    this.canvas.setAttribute('aria-valuemin', '0');
    this.canvas.setAttribute('aria-valuemax', String(Math.max(0, this.states - 1)));
    this.canvas.setAttribute('aria-valuenow', String(this.at));
    this.canvas.setAttribute(
      'aria-valuetext',
      `${this.host.session.stage_words({ module: this.host.session.place.at.module, state: this.at })}: ${row?.pass || row?.kind || ''}`,
    );
    fill(
      this.label,
      row && row.number !== null ? `${this.host.session.number_of({ module: place.at.module, state: this.at })} ` : '',
      h('span', { class: 'faint' }, `${this.at + 1} of ${this.states} `),
      row ? foreign(row.pass || row.name || row.kind, 40, 'strong') : '',
      row && row.kind === 'pass' ? h('span', { class: 'faint' }, ` +${row.added} −${row.removed} ~${row.modified}`) : '',
    );
    this.paint();
  }

  paint(): void {
    const ratio = window.devicePixelRatio || 1, box = this.canvas.getBoundingClientRect();
    if (box.width < 4) return;
    this.canvas.width = Math.round(box.width * ratio);
    this.canvas.height = Math.round(box.height * ratio);
    const c = this.canvas.getContext('2d') as CanvasRenderingContext2D, style = getComputedStyle(this.canvas);
    c.scale(ratio, ratio);
    const one = box.width / Math.max(1, this.states);
    for (let i = 0; i < this.states; i++) {
      const row = this.rows[i], much = row ? row.added + row.removed + row.modified : 0;
      const height = 3 + Math.min(1, Math.log10(1 + much) / 4) * (box.height - 5);
      c.fillStyle = i === this.at ? style.getPropertyValue('--accent') : style.getPropertyValue(i < this.at ? '--bar-past' : '--bar');
      c.fillRect(i * one, box.height - height, Math.max(1, one - (one > 4 ? 1 : 0)), height);
    }
    c.fillStyle = style.getPropertyValue('--accent');
    c.fillRect(this.at * one, 0, Math.max(2, one - (one > 4 ? 1 : 0)), box.height);
  }

  /** Dragging asks for many stages; only the last one wanted is drawn. */
  private scrub(state: number): void {
    this.wanted = state;
    if (this.busy) return;
    this.busy = true;
    void (async () => {
      while (this.wanted >= 0 && this.wanted !== this.host.session.place.at.state) {
        const to = this.wanted;
        await this.host.go({ at: { module: this.host.session.place.at.module, state: to }, against: null }, 'replace');
      }
      this.busy = false;
    })().catch((error) => {
      this.busy = false;
      this.host.failed(error);
    });
  }

  async step(by: number): Promise<boolean> {
    const place = this.host.session.place, state = place.at.state + by;
    if (state < 0 || state >= this.states) return false;
    await this.host.go({ at: { module: place.at.module, state }, against: null });
    return true;
  }

  play(): void {
    if (this.timer) {
      clearTimeout(this.timer);
      this.timer = 0;
      this.play_button.textContent = '▶';
      return;
    }
    this.play_button.textContent = '❚❚';
    const next = () => {
      this.timer = window.setTimeout(() => {
        this.step(1).then((more) => {
          if (more && this.timer) next();
          else if (this.timer) this.play();
        }, (error) => {
          this.play();
          this.host.failed(error);
        });
      }, 450);
    };
    next();
  }
}
