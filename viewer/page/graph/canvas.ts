// A canvas with a scene on it: pan, zoom at the pointer, hover, click, double click, minimap; what stays, stays put
// when the scene changes, and the rest glides there.
import { Drawing } from '../protocol';
import { h } from '../dom';
import { Palette, palette } from './colours';
import { Camera, Marks, Painter } from './painter';
import { box_at, make_scene, Scene } from './scene';

export interface CanvasEvents {
  click(box: number): void;
  open(box: number): void;
  hover(box: number, x: number, y: number): void;
  moved?(camera: Camera): void;
}

export const is_dark = () => document.documentElement.dataset.theme === 'dark';
const still = () => matchMedia('(prefers-reduced-motion: reduce)').matches;
const map_size = { width: 168, height: 128 };

export class GraphCanvas {
  readonly canvas = h('canvas', {
    class: 'graph-canvas',
    tabIndex: 0,
    role: 'application',
    'aria-label': 'Graph of the module; arrow keys up and down go along operands and users, e opens a group',
  });
  readonly minimap = h('canvas', { class: 'minimap', 'aria-hidden': 'true' });
  readonly element = h('div', { class: 'graph-stage' }, this.canvas, this.minimap);
  scene: Scene | null = null;
  camera: Camera = { x: 0, y: 0, zoom: 1 };
  marks: Marks = { selected: -1, hovered: -1, found: null, moving: false };
  frames = 0; // painted so far; tests count them
  private painter: Painter;
  private width = 1;
  private height = 1;
  private ratio = 1;
  private colours: Palette = palette(is_dark());
  private asked = false;
  private settle = 0;
  private glide: { x: Float32Array; y: Float32Array; from_x: Float32Array; from_y: Float32Array; start: number } | null = null;
  private flight = 0;
  private map_image: HTMLCanvasElement | null = null;
  private drawn_waits: (() => void)[] = [];

  constructor(private events: CanvasEvents) {
    this.painter = new Painter(this.canvas.getContext('2d', { alpha: false }) as CanvasRenderingContext2D);
    new ResizeObserver(() => this.resize()).observe(this.element);
    this.listen();
  }

  /** Resolves when the next frame is painted. */
  drawn(): Promise<void> {
    return new Promise((done) => {
      this.drawn_waits.push(done);
      this.ask();
    });
  }

  /** Has the reader chosen what is in sight? Not since the last first look. */
  touched = false;

  set(drawing: Drawing, keep: boolean): void {
    const before = this.scene, scene = make_scene(drawing);
    this.scene = scene;
    this.marks = { selected: -1, hovered: -1, found: null, moving: false };
    this.glide = null;
    this.map_image = null;
    cancelAnimationFrame(this.flight);
    if (before && keep) this.hold(before, scene);
    else this.fit();
    this.ask();
  }

  /** The box nearest to the middle that both scenes have stays where it is on the screen; the others glide. */
  private hold(before: Scene, scene: Scene): void {
    const middle_x = this.camera.x + this.width / 2 / this.camera.zoom, middle_y = this.camera.y + this.height / 2 / this.camera.zoom;
    let best = -1, best_old = -1, least = Infinity;
    const glide = Math.max(before.count, scene.count) < 6000 && !still();
    const from_x = scene.x.slice(), from_y = scene.y.slice();
    for (let i = 0; i < scene.count; i++) {
      const old = before.by_key.get(scene.drawing.boxes.key[i]);
      if (old === undefined) continue;
      from_x[i] = before.x[old];
      from_y[i] = before.y[old];
      if (scene.open[i]) continue;
      const d = Math.abs(before.x[old] + before.w[old] / 2 - middle_x) + Math.abs(before.y[old] + before.h[old] / 2 - middle_y);
      if (d < least) {
        least = d;
        best = i;
        best_old = old;
      }
    }
    if (best < 0) {
      this.fit();
      return;
    }
    const dx = scene.x[best] - before.x[best_old], dy = scene.y[best] - before.y[best_old];
    this.camera = { x: this.camera.x + dx, y: this.camera.y + dy, zoom: this.camera.zoom };
    if (!glide) return;
    let moves = false;
    for (let i = 0; i < scene.count; i++) {
      const known = before.by_key.has(scene.drawing.boxes.key[i]);
      from_x[i] = known ? from_x[i] + dx : scene.x[i];
      from_y[i] = known ? from_y[i] + dy : scene.y[i];
      if (Math.abs(from_x[i] - scene.x[i]) + Math.abs(from_y[i] - scene.y[i]) > 1) moves = true;
    }
    if (moves) this.glide = { x: from_x.slice(), y: from_y.slice(), from_x, from_y, start: performance.now() };
  }

  theme(): void {
    this.colours = palette(is_dark());
    this.map_image = null;
    this.ask();
  }
  palette(): Palette {
    return this.colours;
  }

  select(box: number): void {
    this.marks.selected = box;
    this.ask();
  }
  find(boxes: Set<number> | null): void {
    this.marks.found = boxes && boxes.size ? boxes : null;
    this.ask();
  }

  fit(): void {
    if (!this.scene) return;
    const { width, height } = this.scene.drawing, margin = 24;
    const zoom = Math.min(1.4, (this.width - 2 * margin) / Math.max(1, width), (this.height - 2 * margin) / Math.max(1, height));
    this.camera = this.centred(width / 2, height / 2, Math.max(zoom, 1e-4));
    this.ask();
  }

  /** A first look at something tall begins readable at its top rather than as a thread. */
  first_look(): void {
    this.touched = false;
    this.fit();
    if (!this.scene || this.camera.zoom > 0.4) return;
    const { width } = this.scene.drawing;
    const zoom = Math.min(1, Math.max(0.4, (this.width - 48) / Math.max(1, width)));
    const slim = Math.min(width, this.scene.drawing.height) * this.camera.zoom < 150;
    if (this.scene.count > 400 && !slim) return; // a large one that can be seen as a whole is
    this.camera = this.centred(width > this.width / zoom ? this.top_middle(this.scene, this.height / zoom) : width / 2, 0, zoom);
    this.camera.y = -24 / zoom;
    this.ask();
  }

  /** Where, from left to right, the boxes are that stand in the uppermost part. */
  private top_middle(scene: Scene, height: number): number {
    let sum = 0, count = 0;
    for (const i of scene.order) {
      if (scene.y[i] < height) {
        sum += scene.x[i] + scene.w[i] / 2;
        count++;
      }
    }
    return count ? sum / count : scene.drawing.width / 2;
  }

  private centred(x: number, y: number, zoom: number): Camera {
    return { x: x - this.width / 2 / zoom, y: y - this.height / 2 / zoom, zoom };
  }

  /** Brings a box into the middle, readable; flies there where motion is welcome. */
  go_to(box: number, closer = true): void {
    const scene = this.scene;
    if (!scene || box < 0) return;
    const fits = Math.min(this.width / (scene.w[box] + 60), this.height / (scene.h[box] + 60));
    const zoom = scene.open[box] ? Math.min(1, fits) : closer ? Math.min(Math.max(this.camera.zoom, 0.8), Math.max(fits, 0.05)) : this.camera.zoom;
    this.touched = true;
    const goal = this.centred(scene.x[box] + scene.w[box] / 2, scene.y[box] + scene.h[box] / 2, zoom);
    this.fly(goal);
  }

  in_sight(box: number): boolean {
    const s = this.scene, c = this.camera;
    if (!s || box < 0) return false;
    const sx = (s.x[box] - c.x) * c.zoom, sy = (s.y[box] - c.y) * c.zoom;
    return s.h[box] * c.zoom > 12 && sx > 0 && sy > 0 && sx + s.w[box] * c.zoom < this.width && sy + s.h[box] * c.zoom < this.height;
  }

  private fly(goal: Camera): void {
    cancelAnimationFrame(this.flight);
    if (still()) {
      this.camera = goal;
      this.ask();
      this.events.moved?.(this.camera);
      return;
    }
    const from = { ...this.camera }, start = performance.now();
    const step = () => {
      const t = Math.min(1, (performance.now() - start) / 180), k = 1 - (1 - t) ** 3;
      const zoom = from.zoom * (goal.zoom / from.zoom) ** k;
      const fx = from.x + this.width / 2 / from.zoom, fy = from.y + this.height / 2 / from.zoom;
      const gx = goal.x + this.width / 2 / goal.zoom, gy = goal.y + this.height / 2 / goal.zoom;
      this.camera = t === 1 ? goal : this.centred(fx + (gx - fx) * k, fy + (gy - fy) * k, zoom);
      this.ask();
      if (t < 1) this.flight = requestAnimationFrame(step);
      else this.events.moved?.(this.camera);
    };
    this.flight = requestAnimationFrame(step);
  }

  zoom_by(factor: number, px = this.width / 2, py = this.height / 2): void {
    const zoom = Math.min(4, Math.max(2e-4, this.camera.zoom * factor));
    this.camera = { x: this.camera.x + px / this.camera.zoom - px / zoom, y: this.camera.y + py / this.camera.zoom - py / zoom, zoom };
    this.moving();
  }

  pan_by(dx: number, dy: number): void {
    this.camera = { x: this.camera.x + dx / this.camera.zoom, y: this.camera.y + dy / this.camera.zoom, zoom: this.camera.zoom };
    this.moving();
  }

  /** While it moves, details wait; they come when it stands. */
  private moving(): void {
    cancelAnimationFrame(this.flight);
    this.touched = true;
    const c = this.camera, d = this.scene?.drawing;
    if (d) { // the middle never leaves the drawing
      const half_x = this.width / 2 / c.zoom, half_y = this.height / 2 / c.zoom;
      c.x = Math.max(-half_x, Math.min(d.width - half_x, c.x));
      c.y = Math.max(-half_y, Math.min(d.height - half_y, c.y));
    }
    this.marks.moving = true;
    clearTimeout(this.settle);
    this.settle = window.setTimeout(() => {
      this.marks.moving = false;
      this.ask();
    }, 120);
    this.ask();
    this.events.moved?.(this.camera);
  }

  private resize(): void {
    const box = this.element.getBoundingClientRect();
    if (box.width < 2 || box.height < 2) return;
    const first = this.width === 1;
    this.ratio = Math.min(3, window.devicePixelRatio || 1);
    this.width = Math.floor(box.width);
    this.height = Math.floor(box.height);
    this.canvas.width = Math.round(this.width * this.ratio);
    this.canvas.height = Math.round(this.height * this.ratio);
    if (first && this.scene) this.first_look();
    this.paint();
  }

  ask(): void {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.paint();
    });
  }

  private paint(): void {
    const scene = this.scene;
    if (scene && this.width > 1) {
      let x = scene.x, y = scene.y;
      if (this.glide) {
        const g = this.glide, t = (performance.now() - g.start) / 220;
        if (t >= 1) this.glide = null;
        else {
          const k = 1 - (1 - t) ** 3;
          for (let i = 0; i < scene.count; i++) {
            g.x[i] = g.from_x[i] + (scene.x[i] - g.from_x[i]) * k;
            g.y[i] = g.from_y[i] + (scene.y[i] - g.from_y[i]) * k;
          }
          x = g.x;
          y = g.y;
          this.ask();
        }
      }
      this.painter.paint(scene, this.camera, this.width, this.height, this.ratio, this.colours, this.marks, x, y);
      this.paint_map(scene);
    }
    this.frames++;
    const waits = this.drawn_waits;
    this.drawn_waits = [];
    for (const done of waits) done();
  }

  private map_scale(scene: Scene): number {
    return Math.min(map_size.width / Math.max(1, scene.drawing.width), map_size.height / Math.max(1, scene.drawing.height));
  }

  private paint_map(scene: Scene): void {
    const scale = this.map_scale(scene),
      shows = this.camera.zoom > scale * 1.2 && this.width / this.camera.zoom < scene.drawing.width * 1.02 ||
        this.height / this.camera.zoom < scene.drawing.height * 0.98;
    this.minimap.hidden = !shows;
    if (!shows) return;
    const ratio = this.ratio, map = this.minimap;
    if (!this.map_image) {
      const image = document.createElement('canvas');
      image.width = Math.ceil(Math.max(24, scene.drawing.width * scale) * ratio);
      image.height = Math.ceil(Math.max(24, scene.drawing.height * scale) * ratio);
      const painter = new Painter(image.getContext('2d', { alpha: false }) as CanvasRenderingContext2D);
      painter.paint(scene, { x: 0, y: 0, zoom: scale }, image.width / ratio, image.height / ratio, ratio, this.colours, {
        selected: -1,
        hovered: -1,
        found: null,
        moving: true,
      });
      this.map_image = image;
      map.width = image.width;
      map.height = image.height;
      map.style.width = `${image.width / ratio}px`;
      map.style.height = `${image.height / ratio}px`;
    }
    const c = map.getContext('2d') as CanvasRenderingContext2D;
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.drawImage(this.map_image, 0, 0);
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.strokeStyle = this.colours.selected;
    c.lineWidth = 1.5;
    c.strokeRect(
      this.camera.x * scale,
      this.camera.y * scale,
      Math.max(4, this.width / this.camera.zoom * scale),
      Math.max(4, this.height / this.camera.zoom * scale),
    );
  }

  point(event: MouseEvent): { x: number; y: number; px: number; py: number } {
    const box = this.canvas.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
    return { px, py, x: this.camera.x + px / this.camera.zoom, y: this.camera.y + py / this.camera.zoom };
  }

  private listen(): void {
    const pointers = new Map<number, { x: number; y: number }>();
    let dragged = 0;
    const at = (event: MouseEvent) => {
      const p = this.point(event);
      return this.scene ? box_at(this.scene, p.x, p.y) : -1;
    };
    this.canvas.addEventListener('pointerdown', (event) => {
      if (event.button > 1) return;
      this.canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
      dragged = 0;
    });
    this.canvas.addEventListener('pointermove', (event) => {
      const from = pointers.get(event.pointerId);
      if (!from) {
        const box = at(event);
        if (box !== this.marks.hovered) {
          this.marks.hovered = box;
          this.ask();
        }
        this.events.hover(box, event.clientX, event.clientY);
        return;
      }
      if (pointers.size === 2) { // two fingers
        const [a, b] = [...pointers.values()], old = Math.hypot(a.x - b.x, a.y - b.y);
        from.x = event.clientX;
        from.y = event.clientY;
        const box = this.canvas.getBoundingClientRect();
        this.zoom_by(Math.hypot(a.x - b.x, a.y - b.y) / Math.max(1, old), (a.x + b.x) / 2 - box.left, (a.y + b.y) / 2 - box.top);
        dragged = 99;
        return;
      }
      dragged += Math.abs(event.clientX - from.x) + Math.abs(event.clientY - from.y);
      if (dragged > 3) this.pan_by(from.x - event.clientX, from.y - event.clientY);
      from.x = event.clientX;
      from.y = event.clientY;
    });
    const up = (event: PointerEvent) => {
      if (pointers.delete(event.pointerId) && dragged <= 3 && event.type === 'pointerup' && event.button === 0) this.events.click(at(event));
    };
    this.canvas.addEventListener('pointerup', up);
    this.canvas.addEventListener('pointercancel', up);
    this.canvas.addEventListener('pointerleave', () => {
      this.marks.hovered = -1;
      this.events.hover(-1, 0, 0);
      this.ask();
    });
    this.canvas.addEventListener('dblclick', (event) => {
      const box = at(event);
      if (box >= 0) this.events.open(box);
    });
    this.canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      const unit = event.deltaMode === 1 ? 16 : 1, p = this.point(event);
      if (event.shiftKey) this.pan_by((event.deltaX || event.deltaY) * unit, 0);
      else if (!event.ctrlKey && Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan_by(event.deltaX * unit, 0);
      else this.zoom_by(Math.exp(-event.deltaY * unit / (event.ctrlKey ? 120 : 400)), p.px, p.py);
    }, { passive: false });
    const jump = (event: PointerEvent) => {
      if (!this.scene || !(event.buttons & 1)) return;
      const box = this.minimap.getBoundingClientRect(), scale = this.map_scale(this.scene);
      this.camera = this.centred((event.clientX - box.left) / scale, (event.clientY - box.top) / scale, this.camera.zoom);
      this.moving();
    };
    this.minimap.addEventListener('pointerdown', (event) => {
      this.minimap.setPointerCapture(event.pointerId);
      jump(event);
    });
    this.minimap.addEventListener('pointermove', jump);
  }
}
