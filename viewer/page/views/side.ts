// Two stages, or two modules, side by side; panning and zooming in step.
import { StateRef } from '../protocol';
import { fill, foreign, h } from '../dom';
import { GraphCanvas } from '../graph/canvas';
import { Camera } from '../graph/painter';
import { Host, View } from '../host';
import { Place, same_state } from '../session';
import { stage_picker } from './diff';

export class SideView implements View {
  readonly name = 'side' as const;
  readonly element: HTMLElement;
  private left: GraphCanvas;
  private right: GraphCanvas;
  private heads = [h('div', { class: 'toolbar' }), h('div', { class: 'toolbar' })];
  private shown: { left: StateRef; right: StateRef; open: string } | null = null;
  private in_step = h('input', { type: 'checkbox', id: 'in-step', checked: true });

  constructor(private host: Host) {
    this.left = this.canvas(() => this.right);
    this.right = this.canvas(() => this.left);
    this.element = h(
      'section',
      { class: 'view side-view', 'aria-label': 'Side by side' },
      h('div', { class: 'half' }, this.heads[0], this.left.element),
      h('div', { class: 'half' }, this.heads[1], this.right.element),
    );
  }

  theme(): void {
    this.left.theme();
    this.right.theme();
  }

  private canvas(other: () => GraphCanvas): GraphCanvas {
    const mine: GraphCanvas = new GraphCanvas({
      click: (box) => {
        const b = mine.scene?.drawing.boxes, id = box >= 0 ? b?.id[box] ?? null : null;
        void this.click(mine, id, box >= 0 ? b?.label[box] ?? '' : '');
      },
      open: (box) => this.open(mine, box),
      hover: (box) => {
        const b = mine.scene?.drawing.boxes;
        mine.canvas.title = b && box >= 0 ? `${b.label[box]} ${b.detail[box]}`.slice(0, 300) : '';
      },
      moved: (camera) => {
        if (this.in_step.checked) this.follow(mine, other(), camera);
      },
    });
    return mine;
  }

  /** The other one shows the same things where they are the same, else the same place. */
  private follow(mine: GraphCanvas, other: GraphCanvas, camera: Camera): void {
    if (!mine.scene || !other.scene) return;
    const cx = camera.x + mine.element.clientWidth / 2 / camera.zoom, cy = camera.y + mine.element.clientHeight / 2 / camera.zoom;
    let dx = 0, dy = 0, least = Infinity;
    const a = mine.scene, b = other.scene;
    for (let i = 0; i < a.count; i++) {
      const d = Math.abs(a.x[i] + a.w[i] / 2 - cx) + Math.abs(a.y[i] + a.h[i] / 2 - cy);
      if (d >= least || a.open[i]) continue;
      const twin = b.by_key.get(a.drawing.boxes.key[i]);
      if (twin !== undefined) {
        least = d;
        dx = b.x[twin] - a.x[i];
        dy = b.y[twin] - a.y[i];
      }
    }
    other.camera = { x: camera.x + dx, y: camera.y + dy, zoom: camera.zoom };
    other.ask();
  }

  private async click(canvas: GraphCanvas, id: number | null, name: string): Promise<void> {
    const other = canvas === this.left ? this.right : this.left, twin = id !== null ? other.scene?.by_id.get(id) ?? -1 : -1;
    canvas.select(id !== null ? canvas.scene?.by_id.get(id) ?? -1 : -1);
    other.select(twin);
    if (canvas === this.right) await this.host.select(id, name);
  }

  private open(canvas: GraphCanvas, box: number): void {
    const scene = canvas.scene;
    if (!scene || box < 0 || scene.drawing.boxes.kind[box] === 'op') return;
    const keys = new Set(Array.from(scene.groups, (i) => scene.drawing.boxes.key[i])), key = scene.drawing.boxes.key[box];
    if (keys.has(key)) keys.delete(key);
    else keys.add(key);
    void this.host.go({ open: [...keys], all: false });
  }

  async show(place: Place, turn: number): Promise<void> {
    const session = this.host.session,
      right = place.at,
      left = place.against ?? session.base(place) ?? place.at,
      open = JSON.stringify([place.open, place.all]);
    if (!this.shown || !same_state(this.shown.left, left) || !same_state(this.shown.right, right) || this.shown.open !== open) {
      const ask = (at: StateRef, against: StateRef | null) =>
        session.engine.drawing(place.all ? { at, open: null, all: true, against } : { at, open: place.open, against });
      const one_module = left.module === right.module;
      const [a, b] = await Promise.all([ask(left, null), ask(right, one_module && !same_state(left, right) ? left : null)]);
      if (!session.fresh(turn)) return;
      const first = !this.shown || this.shown.right.module !== right.module;
      this.shown = { left, right, open };
      this.left.set(a, !first);
      this.right.set(b, !first);
      if (first) {
        this.left.first_look();
        this.right.first_look();
      }
      const [row_a, row_b] = await Promise.all([session.row_of(left), session.row_of(right)]);
      fill(
        this.heads[0],
        stage_picker(session, left, 'left', (at) => {
          void this.host.go({ against: at });
        }),
        row_a ? foreign(row_a.pass || row_a.kind, 40, 'strong') : null,
        h('span', { class: 'spring' }),
        h('label', { for: 'in-step' }, this.in_step, ' in step'),
      );
      fill(
        this.heads[1],
        stage_picker(session, right, 'right', (at) => {
          void this.host.go({ at, against: left });
        }),
        row_b ? foreign(row_b.pass || row_b.kind, 40, 'strong') : null,
      );
    }
    if (place.op !== null) { for (const canvas of [this.left, this.right]) canvas.select(canvas.scene?.by_id.get(place.op) ?? -1); }
    await Promise.all([this.left.drawn(), this.right.drawn()]);
  }

  key(event: KeyboardEvent): boolean {
    switch (event.key) {
      case '+':
      case '=':
        this.right.zoom_by(1.4);
        return true;
      case '-':
        this.right.zoom_by(1 / 1.4);
        return true;
      case '0':
        this.right.fit();
        this.left.fit();
        return true;
      case 'z':
        this.right.go_to(this.right.marks.selected);
        return true;
      case 'ArrowUp':
        this.right.pan_by(0, -80);
        return true;
      case 'ArrowDown':
        this.right.pan_by(0, 80);
        return true;
      default:
        return false;
    }
  }
}
