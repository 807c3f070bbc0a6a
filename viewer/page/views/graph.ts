// The graph of one stage: what is open, what is selected, what changed against the stage before.
import { Drawing, StateRef } from '../protocol';
import { add, bdi_path, button, fill, foreign, h, link, plural, save } from '../dom';
import { changes, classes } from '../graph/colours';
import { GraphCanvas } from '../graph/canvas';
import { ancestors, edges_of } from '../graph/scene';
import { Host, View } from '../host';
import { Place, same_state } from '../session';

export class GraphView implements View {
  readonly name = 'graph' as const;
  readonly canvas: GraphCanvas;
  readonly element: HTMLElement;
  private path = h('nav', { class: 'crumbs', 'aria-label': 'Groups around the selection' });
  private tells = h('span', { class: 'faint', 'aria-live': 'polite' });
  private legend = h('div', { class: 'legend', 'aria-label': 'Colours' });
  private tip = h('div', { class: 'tip', hidden: true });
  private shown: Place | null = null;
  private within: string | null = null;
  private drawing: Drawing | null = null;
  private looked = false;

  constructor(private host: Host) {
    this.canvas = new GraphCanvas({
      click: (box) => this.click(box),
      open: (box) => {
        void this.toggle(box);
      },
      hover: (box, x, y) => this.hover(box, x, y),
    });
    const tools = h(
      'div',
      { class: 'toolbar', role: 'toolbar', 'aria-label': 'Graph' },
      button('Fit', () => this.canvas.fit(), { title: 'All of it (0)' }),
      button('To selection', () => this.canvas.go_to(this.canvas.marks.selected), { title: 'z' }),
      button('Next change', () => this.next_change(1), { title: 'c; Shift+C: the one before' }),
      button('+', () => this.canvas.zoom_by(1.4), { 'aria-label': 'Nearer', title: '+' }),
      button('−', () => this.canvas.zoom_by(1 / 1.4), { 'aria-label': 'Farther', title: '-' }),
      button('Open all', () => {
        void this.expand('all');
      }, { title: 'Shift+E' }),
      button('Fold', () => {
        void this.fold();
      }, { title: 'Back to what is open at first sight' }),
      button('SVG', () => {
        void this.save_svg();
      }, { title: 'Save this drawing as SVG' }),
      button('PNG', () => this.save_png(), { title: 'Save what is in sight as PNG' }),
    );
    this.element = h(
      'section',
      { class: 'view graph-view', 'aria-label': 'Graph' },
      tools,
      h('div', { class: 'under-tools' }, this.path, h('span', { class: 'spring' }), this.tells),
      this.canvas.element,
      this.legend,
      this.tip,
    );
    this.make_legend();
  }

  theme(): void {
    this.canvas.theme();
    this.make_legend();
  }

  private make_legend(): void {
    const colours = this.canvas.palette();
    const key = (colour: string, frame: string, text: string, tells: string, change: boolean) => {
      const mark = h('i', { class: change ? 'key change' : 'key' });
      mark.style.background = colour;
      mark.style.borderColor = frame;
      return h('span', { class: 'entry', title: tells }, mark, text);
    };
    fill(this.legend);
    for (const { change, name } of changes) add(this.legend, key('transparent', colours.change[change], name, 'against the stage before', true));
    const present = new Set(this.drawing?.boxes.cls ?? []);
    for (const { cls, name, tells } of classes) {
      if (present.has(cls)) add(this.legend, key(colours.fill[cls], colours.frame[cls], name, tells, false));
    }
  }

  async show(place: Place, turn: number): Promise<void> {
    const session = this.host.session, before = this.shown;
    const same = before && same_state(before.at, place.at) && before.all === place.all && same_state(before.against, place.against) &&
      JSON.stringify(before.open) === JSON.stringify(place.open) && this.drawing;
    if (!same) {
      performance.mark('hlo:layout:from');
      const q: { at: StateRef; open: string[] | null; all?: boolean; against: StateRef | null; within?: string } = {
        at: place.at,
        open: place.open,
        against: session.base(place),
      };
      if (place.all) q.all = true;
      if (this.within && before && same_state(before.at, place.at)) q.within = this.within;
      else this.within = null;
      const drawing = await session.engine.drawing(q).catch((error) => {
        this.within = null;
        throw error;
      });
      if (!session.fresh(turn)) return;
      const keep = !!before && before.at.module === place.at.module && !!this.drawing && !this.canvas_empty();
      this.drawing = drawing;
      this.shown = { ...place };
      this.canvas.set(drawing, keep);
      // Far from the stage before, what was in sight says little; unless the reader chose it.
      const far = !!before && Math.abs(before.at.state - place.at.state) > 1 && !this.canvas.touched;
      if (!keep || !this.looked || far) {
        this.canvas.first_look();
        this.looked = true;
      }
      this.make_legend();
      this.count();
    }
    this.shown = { ...place };
    await this.mark(place, turn, !same);
    await this.canvas.drawn();
    if (!same) performance.measure('hlo:layout', 'hlo:layout:from');
  }

  private canvas_empty(): boolean {
    return !this.canvas.scene || this.canvas.scene.count === 0;
  }

  private count(): void {
    const d = this.drawing;
    if (!d) return;
    const changed = d.boxes.change.reduce((n, c, i) => n + (c !== 'same' && d.boxes.kind[i] !== 'open' ? 1 : 0), 0);
    this.tells.textContent = plural(d.boxes.key.length, 'box', 'boxes') + (d.folded ? `, ${plural(d.folded, 'instruction')} folded` : '') +
      (changed ? `, ${changed} changed` : '');
  }

  /** The selection; where a folded group hides it, the group opens. */
  private async mark(place: Place, turn: number, new_stage: boolean): Promise<void> {
    const scene = this.canvas.scene;
    if (!scene) return;
    const marked = this.host.session.marked, found = new Set<number>();
    if (marked && same_state(marked.at, place.at)) {
      for (const id of marked.ids) {
        const at = scene.by_id.get(id);
        if (at !== undefined) found.add(at);
      }
    }
    this.canvas.find(found);
    if (place.op === null) {
      this.canvas.select(-1);
      this.crumbs(-1);
      return;
    }
    let box = scene.by_id.get(place.op) ?? -1;
    if (box < 0 && this.host.session.can_do && !new_stage) {
      const { keys } = await this.host.session.engine.locate({ at: place.at, id: place.op });
      if (!this.host.session.fresh(turn)) return;
      const missing = keys.filter((key) => {
        const at = scene.by_key.get(key);
        return at === undefined || !scene.open[at];
      });
      if (missing.length) {
        await this.host.go({ open: [...new Set([...this.open_keys(), ...keys])], all: false }, 'replace');
        return;
      }
    } else if (box < 0) {
      const { keys } = await this.host.session.engine.locate({ at: place.at, id: place.op }).catch(() => ({ keys: [] as string[] }));
      for (const key of keys) box = scene.by_key.get(key) ?? box; // the innermost one that is there
    }
    this.canvas.select(box);
    if (box >= 0 && !this.canvas.in_sight(box) && !scene.open[box]) this.canvas.go_to(box);
    this.crumbs(box);
  }

  private open_keys(): string[] {
    const scene = this.canvas.scene;
    return scene ? Array.from(scene.groups, (i) => scene.drawing.boxes.key[i]) : [];
  }

  private crumbs(box: number): void {
    const scene = this.canvas.scene;
    fill(this.path);
    if (this.within) {
      add(
        this.path,
        link('module', () => {
          this.within = null;
          this.drawing = null;
          void this.host.go({}, 'replace');
        }),
      );
    }
    if (!scene || box < 0) return;
    const b = scene.drawing.boxes;
    bdi_path(this.path, [...ancestors(scene, box), box].map((i) => ({ text: b.label[i], run: () => this.canvas.go_to(i) })));
  }

  private click(box: number): void {
    const scene = this.canvas.scene;
    if (!scene) return;
    this.canvas.canvas.focus({ preventScroll: true });
    if (box < 0) {
      void this.host.select(null, '');
      return;
    }
    const id = scene.drawing.boxes.id[box];
    if (id !== null) void this.host.select(id, scene.drawing.boxes.label[box]);
    else {
      this.canvas.select(box);
      this.crumbs(box);
      this.host.say(this.describe(box));
    }
  }

  private describe(box: number): string {
    const b = this.canvas.scene?.drawing.boxes;
    if (!b || box < 0) return '';
    return [
      b.label[box],
      b.opcode[box],
      b.detail[box],
      b.count[box] > 1 ? plural(b.count[box], 'instruction') : '',
      b.times[box] > 1 ? `is here ${b.times[box]} times` : '',
      b.change[box] !== 'same' ? b.change[box] : '',
    ].filter(Boolean).join(', ');
  }

  private hover(box: number, x: number, y: number): void {
    const scene = this.canvas.scene;
    if (!scene || box < 0 || (scene.open[box] && scene.h[box] * this.canvas.camera.zoom > 200)) {
      this.tip.hidden = true;
      return;
    }
    const b = scene.drawing.boxes;
    fill(
      this.tip,
      h('div', null, foreign(b.label[box], 100, 'strong'), b.times[box] > 1 ? ` ×${b.times[box]}` : ''),
      b.detail[box] ? h('div', null, foreign(b.detail[box], 160)) : null,
      h(
        'div',
        { class: 'faint' },
        [b.opcode[box], b.cls[box], b.count[box] > 1 ? plural(b.count[box], 'instruction') : '', b.change[box] !== 'same' ? b.change[box] : ''].filter(Boolean)
          .join(' · '),
      ),
      b.kind[box] === 'op' ? null : h('div', { class: 'faint' }, b.kind[box] === 'folded' ? 'double click opens' : 'double click folds'),
    );
    this.tip.hidden = false;
    const around = this.element.getBoundingClientRect();
    this.tip.style.left = `${Math.max(4, Math.min(x - around.left + 14, around.width - this.tip.offsetWidth - 8))}px`;
    this.tip.style.top = `${Math.max(4, Math.min(y - around.top + 16, around.height - this.tip.offsetHeight - 8))}px`;
  }

  /** Opens a folded group, folds an open one (or the one around an op). */
  async toggle(box: number): Promise<void> {
    const scene = this.canvas.scene;
    if (!scene || box < 0) return;
    const b = scene.drawing.boxes;
    if (b.kind[box] === 'op') box = scene.parent[box];
    if (box < 0) return;
    const key = b.key[box];
    if (!this.host.session.can_do) { // answers made beforehand: a group by itself
      this.within = this.within === key ? null : key;
      this.drawing = null;
      await this.host.go({ op: null, name: '' }, 'replace');
      return;
    }
    const keys = new Set(this.open_keys());
    if (b.kind[box] === 'open') {
      keys.delete(key);
      for (let i = 0; i < scene.count; i++) if (scene.open[i] && ancestors(scene, i).includes(box)) keys.delete(b.key[i]);
    } else keys.add(key);
    await this.host.go({ open: [...keys], all: false, op: b.kind[box] === 'open' ? null : this.host.session.place.op }, 'push');
    const now = this.canvas.scene?.by_key.get(key);
    if (now !== undefined && !this.canvas.in_sight(now) && b.kind[box] !== 'open') this.canvas.go_to(now, false);
  }

  async expand(key: string): Promise<void> {
    if (key === 'all') {
      await this.host.go({ all: true, open: null });
      if (this.host.session.place.op === null) this.canvas.first_look();
      return;
    }
    const scene = this.canvas.scene;
    const box = scene?.by_key.get(key) ?? scene?.drawing.boxes.label.indexOf(key) ?? -1;
    if (scene && box >= 0 && !scene.open[box]) await this.toggle(box);
  }

  private async fold(): Promise<void> {
    await this.host.go({ all: false, open: null, op: null, name: '' });
    this.canvas.first_look();
  }

  private async save_svg(): Promise<void> {
    const place = this.host.session.place;
    try {
      const { svg } = await this.host.session.engine.svg({ at: place.at, open: place.open, all: place.all, against: this.host.session.base() });
      save(`stage-${this.host.session.number_of(place.at)}.svg`, new Blob([svg], { type: 'image/svg+xml' }));
    } catch (error) {
      this.host.failed(error);
    }
  }

  private save_png(): void {
    this.canvas.canvas.toBlob((blob) => {
      if (blob) save(`stage-${this.host.session.number_of(this.host.session.place.at)}.png`, blob);
    }, 'image/png');
  }

  /** Along an edge: to an operand (up) or a user (down). */
  private step(down: boolean): void {
    const scene = this.canvas.scene, at = this.canvas.marks.selected;
    if (!scene) return;
    if (at < 0) {
      const first = scene.order[0];
      if (first !== undefined) this.click(first);
      return;
    }
    const { into, out } = edges_of(scene, at), list = down ? out : into;
    if (!list.length) {
      this.host.say(down ? 'no users here' : 'no operands here');
      return;
    }
    const next = (down ? scene.edges.to : scene.edges.from)[list[0]];
    this.click(next);
    if (!this.canvas.in_sight(next)) this.canvas.go_to(next);
  }

  /** The changed boxes one after the other, from the selection on. */
  private next_change(by: number): void {
    const scene = this.canvas.scene;
    if (!scene?.changed.length) {
      this.host.say('nothing changed here');
      return;
    }
    const list = scene.changed, now = list.indexOf(this.canvas.marks.selected);
    const next = list[((now < 0 && by < 0 ? 0 : now) + by + list.length) % list.length];
    this.click(next);
    this.canvas.go_to(next);
  }

  key(event: KeyboardEvent): boolean {
    const c = this.canvas;
    switch (event.key) {
      case 'ArrowUp':
        if (event.shiftKey) c.pan_by(0, -120);
        else this.step(false);
        return true;
      case 'ArrowDown':
        if (event.shiftKey) c.pan_by(0, 120);
        else this.step(true);
        return true;
      case 'ArrowLeft':
        if (event.shiftKey) {
          c.pan_by(-120, 0);
          return true;
        }
        return false;
      case 'ArrowRight':
        if (event.shiftKey) {
          c.pan_by(120, 0);
          return true;
        }
        return false;
      case '+':
      case '=':
        c.zoom_by(1.4);
        return true;
      case '-':
        c.zoom_by(1 / 1.4);
        return true;
      case '0':
        c.fit();
        return true;
      case 'z':
        c.go_to(c.marks.selected);
        return true;
      case 'e':
      case 'Enter':
        void this.toggle(c.marks.selected).catch((error) => this.host.failed(error));
        return true;
      case 'c':
        this.next_change(1);
        return true;
      case 'C':
        this.next_change(-1);
        return true;
      case 'E':
        void this.expand('all').catch((error) => this.host.failed(error));
        return true;
      case 'u': {
        const up = c.scene && c.marks.selected >= 0 ? c.scene.parent[c.marks.selected] : -1;
        if (up >= 0) {
          c.select(up);
          this.crumbs(up);
          c.go_to(up);
        }
        return true;
      }
      default:
        return false;
    }
  }
}
