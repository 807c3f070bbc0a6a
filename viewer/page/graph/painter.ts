// Paints a scene: far away boxes are written as pixels (a call a box would be too slow for 60,000), near ones drawn with
// names and shapes, edges between. Everything is culled against what is in sight.
import { OpClass } from '../protocol';
import { Palette, pixel } from './colours';
import { edges_of, Scene } from './scene';

export interface Camera {
  x: number;
  y: number;
  zoom: number;
} // x, y: the drawing's point in the upper left corner
export interface Marks {
  selected: number;
  hovered: number;
  found: Set<number> | null;
  moving: boolean;
}

const font = 'system-ui, "DejaVu Sans", sans-serif';
const tiny = 7; // pixels of height below which a box is only a colour
const many_edges = 9000; // edges in sight above which only those of the selection are drawn

export class Painter {
  private buffer: ImageData | null = null;
  private pixels = new Uint32Array();
  private names = new Map<string, number>();
  constructor(private context: CanvasRenderingContext2D) {}

  /** `x`, `y` of boxes may differ from the scene's own while they move from stage to stage. Returns boxes in sight. */
  paint(
    scene: Scene,
    camera: Camera,
    width: number,
    height: number,
    ratio: number,
    colours: Palette,
    marks: Marks,
    x: Float32Array = scene.x,
    y: Float32Array = scene.y,
  ): number {
    const c = this.context, z = camera.zoom, { w, h } = scene;
    const left = camera.x, top = camera.y, right = left + width / z, bottom = top + height / z;
    const seen: number[] = [], small: number[] = [];
    for (let k = 0; k < scene.order.length; k++) {
      const i = scene.order[k];
      if (x[i] > right || y[i] > bottom || x[i] + w[i] < left || y[i] + h[i] < top) continue;
      if (h[i] * z < tiny || w[i] * z < tiny * 1.5) small.push(i);
      else seen.push(i);
    }
    c.setTransform(1, 0, 0, 1, 0, 0);
    if (small.length > 1500) this.raster(scene, camera, Math.round(width * ratio), Math.round(height * ratio), ratio, colours, small, x, y);
    else {
      c.fillStyle = colours.ground;
      c.fillRect(0, 0, width * ratio, height * ratio);
      c.setTransform(ratio * z, 0, 0, ratio * z, -left * z * ratio, -top * z * ratio);
      this.open_groups(scene, colours, z, left, top, right, bottom, x, y);
      for (const i of small) {
        c.fillStyle = colours.frame[scene.drawing.boxes.cls[i]] ?? colours.frame.other;
        c.fillRect(x[i], y[i], Math.max(w[i], 1 / z), Math.max(h[i], 1 / z));
      }
    }
    c.setTransform(ratio * z, 0, 0, ratio * z, -left * z * ratio, -top * z * ratio);
    if (x === scene.x) this.edges(scene, colours, z, left, top, right, bottom, marks);
    this.boxes(scene, colours, z, seen, marks, x, y);
    this.changes(scene, colours, z, left, top, right, bottom, x, y);
    if (x === scene.x) this.selection(scene, colours, z, marks);
    this.titles(scene, colours, z, left, top, right, bottom, ratio, x, y);
    return seen.length + small.length;
  }

  private open_groups(
    scene: Scene,
    colours: Palette,
    z: number,
    left: number,
    top: number,
    right: number,
    bottom: number,
    x: Float32Array,
    y: Float32Array,
  ): void {
    const c = this.context, { w, h } = scene;
    c.lineWidth = 1 / z;
    for (let k = 0; k < scene.groups.length; k++) {
      const i = scene.groups[k];
      if (x[i] > right || y[i] > bottom || x[i] + w[i] < left || y[i] + h[i] < top) continue;
      c.fillStyle = colours.group[Math.min(scene.depth[i], colours.group.length - 1)];
      c.fillRect(x[i], y[i], w[i], h[i]);
      if (h[i] * z > 8) {
        c.strokeStyle = colours.line;
        c.strokeRect(x[i], y[i], w[i], h[i]);
      }
    }
  }

  /** Groups and small boxes as pixels of one image. */
  private raster(
    scene: Scene,
    camera: Camera,
    width: number,
    height: number,
    ratio: number,
    colours: Palette,
    small: number[],
    x: Float32Array,
    y: Float32Array,
  ): void {
    if (!this.buffer || this.buffer.width !== width || this.buffer.height !== height) {
      this.buffer = new ImageData(width, height);
      this.pixels = new Uint32Array(this.buffer.data.buffer);
    }
    const pixels = this.pixels, scale = camera.zoom * ratio, { w, h } = scene;
    pixels.fill(pixel(colours.ground));
    const group = colours.group.map(pixel), line = pixel(colours.line);
    const rectangle = (i: number, colour: number, frame: boolean) => {
      let l = Math.round((x[i] - camera.x) * scale), t = Math.round((y[i] - camera.y) * scale);
      let r = Math.max(l + 1, Math.round((x[i] + w[i] - camera.x) * scale)), b = Math.max(t + 1, Math.round((y[i] + h[i] - camera.y) * scale));
      if (l < 0) l = 0;
      if (t < 0) t = 0;
      if (r > width) r = width;
      if (b > height) b = height;
      if (l >= r) return;
      for (let row = t; row < b; row++) pixels.fill(frame && (row === t || row === b - 1) ? line : colour, row * width + l, row * width + r);
    };
    for (let k = 0; k < scene.groups.length; k++) {
      const i = scene.groups[k];
      rectangle(i, group[Math.min(scene.depth[i], group.length - 1)], h[i] * scale > 6);
    }
    const by_class = new Map<OpClass, number>();
    const { cls } = scene.drawing.boxes;
    for (const i of small) {
      let colour = by_class.get(cls[i]);
      if (colour === undefined) by_class.set(cls[i], colour = pixel(colours.frame[cls[i]] ?? colours.frame.other));
      rectangle(i, colour, false);
    }
    this.context.putImageData(this.buffer, 0, 0);
  }

  private edges(scene: Scene, colours: Palette, z: number, left: number, top: number, right: number, bottom: number, marks: Marks): void {
    const e = scene.edges, c = this.context;
    const strength = Math.min(1, (z - 0.08) / 0.35);
    if (strength <= 0) return;
    const seen: number[] = [];
    for (let i = 0; i < e.count; i++) {
      if (e.left[i] <= right && e.right[i] >= left && e.top[i] <= bottom && e.bottom[i] >= top) seen.push(i);
    }
    if (seen.length > many_edges || (marks.moving && seen.length > 2500)) return;
    c.globalAlpha = 0.25 + 0.55 * strength;
    c.strokeStyle = colours.edge;
    c.lineWidth = Math.min(1.2, 1.2 * z) / z;
    c.beginPath();
    for (const i of seen) this.path(scene, i);
    c.stroke();
    if (z > 0.35 && !marks.moving) {
      c.fillStyle = colours.edge;
      c.beginPath();
      for (const i of seen) this.head(scene, i, 4.5);
      c.fill();
      if (z > 0.55) this.stub_names(scene, seen, colours, z);
    }
    c.globalAlpha = 1;
  }

  private stub_names(scene: Scene, seen: number[], colours: Palette, z: number): void {
    const c = this.context, { label } = scene.drawing.edges, e = scene.edges;
    c.font = `italic 9px ${font}`;
    c.textAlign = 'left';
    c.textBaseline = 'bottom';
    c.fillStyle = colours.faint;
    for (const i of seen) if (label[i] && z > 0.55) c.fillText(shown(label[i], 24), e.points[2 * e.start[i]] + 3, e.points[2 * e.start[i] + 1] + 9);
  }

  private path(scene: Scene, edge: number): void {
    const { points, start } = scene.edges, c = this.context, from = start[edge], to = start[edge + 1];
    if (to - from < 2) return;
    c.moveTo(points[2 * from], points[2 * from + 1]);
    if (to - from === 2) {
      c.lineTo(points[2 * from + 2], points[2 * from + 3]);
      return;
    }
    for (let p = from + 1; p + 1 < to; p++) { // corners are rounded
      const mx = (points[2 * p] + points[2 * p + 2]) / 2, my = (points[2 * p + 1] + points[2 * p + 3]) / 2;
      if (p + 2 === to) c.quadraticCurveTo(points[2 * p], points[2 * p + 1], points[2 * p + 2], points[2 * p + 3]);
      else c.quadraticCurveTo(points[2 * p], points[2 * p + 1], mx, my);
    }
  }

  private head(scene: Scene, edge: number, size: number): void {
    const { points, start } = scene.edges, c = this.context, last = start[edge + 1] - 1;
    if (last <= start[edge]) return;
    const px = points[2 * last], py = points[2 * last + 1], dx = px - points[2 * last - 2], dy = py - points[2 * last - 1];
    const length = Math.hypot(dx, dy) || 1, ux = dx / length * size, uy = dy / length * size;
    c.moveTo(px, py);
    c.lineTo(px - ux - uy * .5, py - uy + ux * .5);
    c.lineTo(px - ux + uy * .5, py - uy - ux * .5);
  }

  private boxes(scene: Scene, colours: Palette, z: number, seen: number[], marks: Marks, x: Float32Array, y: Float32Array): void {
    const c = this.context, { w, h } = scene, b = scene.drawing.boxes, labels = seen.length < 2500;
    c.lineWidth = 1 / z;
    const rounded = z > 0.4 && seen.length < 1500;
    for (const i of seen) {
      const cls = b.cls[i] ?? 'other', folded = b.kind[i] === 'folded';
      c.fillStyle = folded ? colours.group[Math.min(scene.depth[i] + 1, colours.group.length - 1)] : colours.fill[cls];
      c.strokeStyle = colours.frame[cls];
      if (folded && z > 0.2) { // a stack: more lies behind
        c.strokeRect(x[i] + 3, y[i] - 3, w[i], h[i]);
        c.fillRect(x[i] + 3, y[i] - 3, w[i], h[i]);
      }
      if (rounded) {
        c.beginPath();
        c.roundRect(x[i], y[i], w[i], h[i], folded ? 2 : 4);
        c.fill();
        c.stroke();
      } else {
        c.fillRect(x[i], y[i], w[i], h[i]);
        c.strokeRect(x[i], y[i], w[i], h[i]);
      }
      if (folded) {
        c.fillStyle = colours.frame[cls];
        c.fillRect(x[i], y[i], Math.max(3, 2 / z), h[i]);
      }
      if (labels && h[i] * z >= 9.5) this.label(scene, i, colours, z, x[i], y[i]);
    }
    if (marks.hovered >= 0 && !scene.open[marks.hovered]) {
      const i = marks.hovered;
      c.strokeStyle = colours.text;
      c.lineWidth = 1.5 / z;
      c.strokeRect(x[i], y[i], w[i], h[i]);
    }
  }

  private width(text: string, size: number): number {
    let width = this.names.get(text);
    if (width === undefined) {
      if (this.names.size > 20000) this.names.clear();
      this.context.font = `10px ${font}`;
      this.names.set(text, width = this.context.measureText(text).width / 10);
    }
    return width * size;
  }

  private cut(text: string, room: number, size: number): string {
    let short = shown(text, 120);
    room *= 0.95; // small letters are wider than large ones scaled down
    if (this.width(short, size) <= room) return short;
    const letters = Math.floor(short.length * room / this.width(short, size));
    if (letters < 3) return '';
    const tail = letters < 12 ? 0 : Math.floor((letters - 1) / 3);
    short = short.slice(0, letters - 1 - tail) + '…' + (tail ? short.slice(-tail) : '');
    return short;
  }

  private label(scene: Scene, i: number, colours: Palette, z: number, x: number, y: number): void {
    const c = this.context, { w, h } = scene, b = scene.drawing.boxes;
    const two = h[i] >= 26 && h[i] * z >= 22 && b.detail[i] !== '';
    const size = Math.min(two ? h[i] * .4 : h[i] * .72, Math.max(12, 9.5 / z)), room = w[i] - Math.min(10, 5 / z) - (b.times[i] > 1 ? size * 2 : 0);
    c.textAlign = 'left';
    c.textBaseline = 'middle';
    const name = this.cut(b.label[i], b.kind[i] === 'folded' ? room / 1.12 : room, size);
    c.font = `${b.kind[i] === 'folded' ? '600 ' : ''}${size}px ${font}`;
    c.fillStyle = colours.text;
    c.fillText(name, x + 6, y + (two ? h[i] * .32 : h[i] / 2));
    if (b.times[i] > 1) {
      c.textAlign = 'right';
      c.font = `700 ${size}px ${font}`;
      c.fillText('×' + b.times[i], x + w[i] - 5, y + (two ? h[i] * .32 : h[i] / 2));
      c.textAlign = 'left';
    }
    if (!two) return;
    const detail = this.cut(b.detail[i], room, size * .88);
    c.font = `${size * .88}px ${font}`;
    c.fillStyle = colours.faint;
    c.fillText(detail, x + 6, y + h[i] * .72);
  }

  /** What the pass did is seen from any height: a changed box is never less than a few pixels. */
  private changes(scene: Scene, colours: Palette, z: number, left: number, top: number, right: number, bottom: number, x: Float32Array, y: Float32Array): void {
    const c = this.context, { w, h } = scene, { change } = scene.drawing.boxes;
    const least = 3 / z, by_colour = new Map<string, Path2D>();
    for (let k = 0; k < scene.changed.length; k++) {
      const i = scene.changed[k];
      if (x[i] > right || y[i] > bottom || x[i] + w[i] < left || y[i] + h[i] < top) continue;
      const colour = colours.change[change[i]];
      if (h[i] * z < tiny) {
        c.fillStyle = colour;
        c.fillRect(x[i], y[i], Math.max(w[i], least), Math.max(h[i], least));
      } else {
        let path = by_colour.get(colour);
        if (!path) by_colour.set(colour, path = new Path2D());
        path.rect(x[i] - 1 / z, y[i] - 1 / z, w[i] + 2 / z, h[i] + 2 / z);
      }
    }
    for (const [colour, path] of by_colour) {
      c.strokeStyle = colour;
      c.lineWidth = Math.max(2.5 / z, 1.5);
      c.setLineDash(colour === colours.change.leaves ? [6, 3] : []);
      c.stroke(path);
      c.setLineDash([]);
    }
  }

  private selection(scene: Scene, colours: Palette, z: number, marks: Marks): void {
    const c = this.context, { x, y, w, h } = scene;
    const frame = (i: number, colour: string, wide: number) => {
      c.strokeStyle = colour;
      c.lineWidth = wide / z;
      const grow = (wide / 2 + 1) / z;
      c.strokeRect(x[i] - grow, y[i] - grow, Math.max(w[i], 3 / z) + 2 * grow, Math.max(h[i], 3 / z) + 2 * grow);
    };
    if (marks.found) { for (const i of marks.found) frame(i, colours.user, 2); }
    const at = marks.selected;
    if (at < 0) return;
    const { into, out } = edges_of(scene, at);
    for (const [list, colour, end] of [[into, colours.operand, scene.edges.from], [out, colours.user, scene.edges.to]] as [Int32Array, string, Int32Array][]) {
      c.strokeStyle = colour;
      c.fillStyle = colour;
      c.lineWidth = 2.2 / z;
      c.beginPath();
      for (const edge of list) this.path(scene, edge);
      c.stroke();
      c.beginPath();
      for (const edge of list) this.head(scene, edge, Math.max(6, 5 / z));
      c.fill();
      for (const edge of list) frame(end[edge], colour, 2);
    }
    frame(at, colours.selected, 3.5);
  }

  /** Names of open groups, kept in sight while any part of the group is. */
  private titles(
    scene: Scene,
    colours: Palette,
    z: number,
    left: number,
    top: number,
    right: number,
    bottom: number,
    ratio: number,
    x: Float32Array,
    y: Float32Array,
  ): void {
    const c = this.context, { w, h } = scene, b = scene.drawing.boxes;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.textAlign = 'left';
    c.textBaseline = 'middle';
    const told: { l: number; t: number; r: number; b: number }[] = [];
    for (let k = scene.groups.length - 1; k >= 0 && told.length < 200; k--) { // where two would overlap, the inner one is told
      const i = scene.groups[k];
      if (w[i] * z < 60 || h[i] * z < 30 || x[i] > right || y[i] > bottom || x[i] + w[i] < left || y[i] + h[i] < top) continue;
      const sx = Math.max((x[i] - left) * z, 0), sy = (y[i] - top) * z;
      const room = Math.min((x[i] + w[i] - left) * z, (right - left) * z) - sx - 12;
      const stuck = sy >= 0 ? sy : Math.max(sy, Math.min(scene.depth[i] * 17, sy + h[i] * z - 20));
      const size = Math.max(8, Math.min(11, 26 * z));
      const text = this.cut(b.label[i] + (b.times[i] > 1 ? ` ×${b.times[i]}` : ''), room, size);
      if (!text) continue;
      c.font = `600 ${size}px ${font}`;
      const wide = this.width(text, size) * 1.06 + 8, box = { l: sx, t: stuck + 1, r: sx + Math.min(wide, room + 8), b: stuck + size + 4 };
      if (told.some((one) => one.l < box.r && box.l < one.r && one.t < box.b && box.t < one.b)) continue;
      told.push(box);
      c.fillStyle = colours.group[Math.min(scene.depth[i], colours.group.length - 1)];
      c.globalAlpha = 0.9;
      c.fillRect(sx + 1, stuck + 1, Math.min(wide, room + 8), size + 4);
      c.globalAlpha = 1;
      c.fillStyle = b.change[i] !== 'same' ? colours.change[b.change[i]] : colours.faint;
      c.fillText(text, sx + 5, stuck + size / 2 + 3.5);
    }
  }
}

function shown(text: string, length: number): string {
  const clean = text.length > length ? text.slice(0, length - 12) + '…' + text.slice(-11) : text;
  // deno-lint-ignore no-control-regex -- they are what is looked for
  return clean.replace(/[\u0000-\u001f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '·');
}
