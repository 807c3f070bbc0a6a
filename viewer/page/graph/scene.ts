// A drawing made ready to be painted sixty times a second: flat arrays, depths, neighbours, a grid for what is near a point.
import { Drawing, Id } from '../protocol';
import { plain_bytes } from '../unpack';

export interface Scene {
  drawing: Drawing;
  count: number;
  x: Float32Array;
  y: Float32Array;
  w: Float32Array;
  h: Float32Array;
  depth: Uint8Array;
  open: Uint8Array;
  parent: Int32Array;
  order: Int32Array; // boxes that are painted as boxes (not open groups), then none
  groups: Int32Array; // open groups, outer ones first
  changed: Int32Array; // boxes that are not what they were
  by_key: Map<string, number>;
  by_id: Map<Id, number>;
  edges: {
    count: number;
    from: Int32Array;
    to: Int32Array;
    start: Int32Array;
    points: Float32Array;
    left: Float32Array;
    right: Float32Array;
    top: Float32Array;
    bottom: Float32Array;
  };
  out: Int32Array[] | null;
  into: Int32Array[] | null; // edges by box, made when first asked for
  grid: { size: number; columns: number; rows: number; cells: Map<number, number[]> };
}

export function make_scene(drawing: Drawing): Scene {
  const b = drawing.boxes, count = b.key.length;
  const x = Float32Array.from(b.x), y = Float32Array.from(b.y), w = Float32Array.from(b.w), h = Float32Array.from(b.h);
  const depth = new Uint8Array(count), open = new Uint8Array(count), parent = Int32Array.from(b.parent, (p) => p >= 0 && p < count ? p : -1);
  const order: number[] = [], groups: number[] = [], changed: number[] = [];
  const by_key = new Map<string, number>(), by_id = new Map<Id, number>();
  for (let i = 0; i < count; i++) {
    if (parent[i] >= 0 && parent[i] < i) depth[i] = Math.min(255, depth[parent[i]] + 1);
    open[i] = b.kind[i] === 'open' ? 1 : 0;
    (open[i] ? groups : order).push(i);
    if (b.change[i] !== 'same' && !open[i]) changed.push(i);
    by_key.set(b.key[i], i);
    const id = b.id[i];
    if (id !== null && (!by_id.has(id) || !open[i])) by_id.set(id, i);
  }
  return {
    drawing,
    count,
    x,
    y,
    w,
    h,
    depth,
    open,
    parent,
    order: Int32Array.from(order),
    groups: Int32Array.from(groups),
    changed: Int32Array.from(changed),
    by_key,
    by_id,
    edges: make_edges(drawing),
    out: null,
    into: null,
    grid: make_grid(drawing, x, y, w, h),
  };
}

/** Pixels of base64 of 32-bit integers of quarters. */
function places(text: string): Float32Array {
  const bytes = plain_bytes(text), view = new DataView(bytes.buffer);
  const out = new Float32Array(bytes.length >> 2);
  for (let i = 0; i < out.length; i++) out[i] = view.getInt32(4 * i, true) / 4;
  return out;
}

function make_edges(drawing: Drawing): Scene['edges'] {
  const e = drawing.edges, count = e.from.length, points = places(e.points), start = new Int32Array(count + 1);
  const left = new Float32Array(count), right = new Float32Array(count), top = new Float32Array(count), bottom = new Float32Array(count);
  for (let i = 0; i < count; i++) {
    start[i] = e.start[i] >> 1;
    // `start` counts numbers, two a point
    const end = (i + 1 < e.start.length ? e.start[i + 1] : points.length) >> 1;
    start[i + 1] = end;
    let l = Infinity, r = -Infinity, t = Infinity, b = -Infinity;
    for (let p = start[i]; p < end; p++) {
      const px = points[2 * p], py = points[2 * p + 1];
      if (px < l) l = px;
      if (px > r) r = px;
      if (py < t) t = py;
      if (py > b) b = py;
    }
    left[i] = l;
    right[i] = r;
    top[i] = t;
    bottom[i] = b;
  }
  return { count, from: Int32Array.from(e.from), to: Int32Array.from(e.to), start, points, left, right, top, bottom };
}

/** Boxes by the cells that they touch. Large boxes (open groups) would touch all: those are asked one by one. */
function make_grid(drawing: Drawing, x: Float32Array, y: Float32Array, w: Float32Array, h: Float32Array): Scene['grid'] {
  const area = Math.max(1, drawing.width * drawing.height);
  const size = Math.max(64, Math.sqrt(area / Math.max(1, x.length)) * 2);
  const columns = Math.max(1, Math.ceil(drawing.width / size)), rows = Math.max(1, Math.ceil(drawing.height / size));
  const cells = new Map<number, number[]>();
  for (let i = 0; i < x.length; i++) {
    if (drawing.boxes.kind[i] === 'open') continue;
    const c1 = Math.floor((x[i] + w[i]) / size), r1 = Math.floor((y[i] + h[i]) / size);
    for (let r = Math.floor(y[i] / size); r <= r1; r++) {
      for (let c = Math.floor(x[i] / size); c <= c1; c++) {
        const cell = r * columns + c, list = cells.get(cell);
        if (list) list.push(i);
        else cells.set(cell, [i]);
      }
    }
  }
  return { size, columns, rows, cells };
}

/** The box at a point of the drawing: an op or a folded group, else the innermost open group; -1: none. */
export function box_at(scene: Scene, px: number, py: number): number {
  const { x, y, w, h, grid } = scene;
  const inside = (i: number) => px >= x[i] && px <= x[i] + w[i] && py >= y[i] && py <= y[i] + h[i];
  const cell = grid.cells.get(Math.floor(py / grid.size) * grid.columns + Math.floor(px / grid.size));
  if (cell) { for (let k = cell.length - 1; k >= 0; k--) if (inside(cell[k])) return cell[k]; }
  for (let k = scene.groups.length - 1; k >= 0; k--) if (inside(scene.groups[k])) return scene.groups[k];
  return -1;
}

export function edges_of(scene: Scene, box: number): { into: Int32Array; out: Int32Array } {
  if (!scene.out || !scene.into) {
    const out: number[][] = [], into: number[][] = [];
    for (let e = 0; e < scene.edges.count; e++) {
      (out[scene.edges.from[e]] ??= []).push(e);
      (into[scene.edges.to[e]] ??= []).push(e);
    }
    scene.out = [];
    scene.into = [];
    for (let i = 0; i < scene.count; i++) {
      scene.out.push(Int32Array.from(out[i] ?? []));
      scene.into.push(Int32Array.from(into[i] ?? []));
    }
  }
  return { into: scene.into[box] ?? new Int32Array(), out: scene.out[box] ?? new Int32Array() };
}

/** Boxes around a box, the outermost first. */
export function ancestors(scene: Scene, box: number): number[] {
  const path: number[] = [];
  for (let i = scene.parent[box]; i >= 0 && path.length < 256; i = scene.parent[i]) path.unshift(i);
  return path;
}
