// Drawings by SVG: bars, steps, columns, a roofline. Each has a name that says what it shows, colours come from the style's
// classes alone, and where an op or a stage is under the pointer a click leads there; the keyboard has lists next to them.
import { Memory, Roofline, Row, Thunks } from './protocol';
import { amount, bytes, h, s, seconds, shorten, visible } from './dom';

type Draw = (wide: number) => SVGElement;

/** A drawing as wide as its place, drawn again when that changes: letters keep their size on any screen. */
export function chart(draw: Draw, most = 1100): HTMLElement {
  const box = h('div', { class: 'chart-fit' });
  let drawn = 0;
  new ResizeObserver((entries) => {
    const wide = Math.floor(Math.min(most, entries[0].contentRect.width));
    if (wide < 40 || Math.abs(wide - drawn) < 8) return;
    drawn = wide;
    box.replaceChildren(draw(wide));
  }).observe(box);
  return box;
}

function picture(wide: number, high: number, name: string): SVGElement {
  return s('svg', { viewBox: `0 0 ${wide} ${high}`, width: wide, height: high, class: 'drawn', role: 'img', 'aria-label': visible(name) });
}

function label(x: number, y: number, text: string, anchor: 'start' | 'middle' | 'end' = 'start', name = ''): SVGElement {
  return s('text', { x, y, class: 'chart-text ' + name, 'text-anchor': anchor }, visible(text));
}

const round = (n: number): string => amount(n).replace(/\.0+(?= |$)/, ''); // 10 k, not 10.0 k

const titled = (element: SVGElement, text: string): SVGElement => {
  element.append(s('title', {}, visible(shorten(text, 400))));
  return element;
};

/** One bar of a list: `share` of the whole width, null: unknown; and where `mark` is one a line there (what is needed at least). */
export function bar(share: number | null, mark: number | null, name: string): SVGElement {
  const clamp = (n: number) => Math.max(0, Math.min(1, isFinite(n) ? n : 0)) * 100;
  const svg = s('svg', { class: 'bar-drawn', 'aria-hidden': 'true' });
  if (share === null) {
    svg.append(s('line', { x1: 0, x2: '100%', y1: '50%', y2: '50%', class: 'bar-unknown' }));
    return svg;
  }
  svg.append(
    s('rect', { x: 0, y: 0, width: '100%', height: '100%', class: 'bar-ground' }),
    s('rect', { x: 0, y: 0, width: `${Math.max(share > 0 ? 0.4 : 0, clamp(share))}%`, height: '100%', class: 'bar-value ' + name }),
  );
  if (mark !== null) svg.append(s('line', { x1: `${clamp(mark)}%`, x2: `${clamp(mark)}%`, y1: 0, y2: '100%', class: 'bar-mark' }));
  return svg;
}

/** Live bytes over the schedule as steps, with the peak. */
export function memory_chart(memory: Memory, wide: number): SVGElement {
  const high = 190, left = 62, right = 10, top = 22, bottom = 24, places = Math.max(1, memory.places);
  const peak = memory.curve.reduce((best, one) => one.bytes > best.bytes ? one : best, memory.curve[0] ?? { place: 0, bytes: 0 });
  const most = Math.max(1, peak.bytes) * 1.04,
    x = (place: number) => left + place / places * (wide - left - right),
    y = (n: number) => high - bottom - n / most * (high - top - bottom);
  const svg = picture(wide, high, `Live bytes over the ${places} places of the schedule: the most, ${bytes(peak.bytes)}, at place ${peak.place}`);
  for (let k = 0; k <= 4; k++) {
    const n = peak.bytes * k / 4;
    svg.append(s('line', { x1: left, x2: wide - right, y1: y(n), y2: y(n), class: 'grid' }), label(left - 6, y(n) + 4, bytes(n), 'end', 'faint-text'));
  }
  // Of the steps that share a column of pixels the highest is drawn.
  const columns = new Map<number, number>();
  let before = 0, path = `M${x(0)} ${y(0)}`, last = 0;
  for (const one of memory.curve) {
    const at = Math.round(x(one.place));
    columns.set(at, Math.max(columns.get(at) ?? 0, one.bytes));
  }
  for (const [at, n] of columns) {
    path += `H${at}V${y(n).toFixed(1)}`;
    before = n;
    last = at;
  }
  if (last || before) path += `H${wide - right}V${y(0)}Z`;
  const px = x(peak.place), on_left = px > wide / 2;
  svg.append(
    s('path', { d: path, class: 'area' }),
    s('line', { x1: px, x2: px, y1: top - 8, y2: high - bottom, class: 'peak' }),
    s('circle', { cx: px, cy: y(peak.bytes), r: 4, class: 'peak-dot' }),
    label(px + (on_left ? -7 : 7), top - 9, `peak ${bytes(peak.bytes)}`, on_left ? 'end' : 'start', 'strong-text'),
    label(left, high - 7, 'first op', 'start', 'faint-text'),
    label((left + wide - right) / 2, high - 7, 'order of the schedule', 'middle', 'faint-text'),
    label(wide - right, high - 7, 'last op', 'end', 'faint-text'),
  );
  return svg;
}

export interface Column {
  row: Row;
  state: number;
  number: string;
  much: number;
}

/** A column a stage, as high as what its pass changed (in tens); a click on one leads there. */
export function passes_chart(columns: Column[], wide: number, pick: (column: Column) => void): SVGElement {
  const high = 150, left = 42, right = 8, top = 18, bottom = 24, most = Math.max(10, ...columns.map((one) => one.much)), tens = Math.log10(1 + most);
  const one = (wide - left - right) / Math.max(1, columns.length), y = (n: number) => high - bottom - Math.log10(1 + n) / tens * (high - top - bottom);
  const highest = [...columns].sort((a, b) => b.much - a.much)[0];
  const svg = picture(
    wide,
    high,
    `Instructions changed, new or gone by stage, ${columns.length} stages` +
      (highest ? `; most, ${highest.much}, in stage ${highest.number} ${shorten(highest.row.pass, 60)}` : ''),
  );
  for (let n = 1; n <= most; n *= 10) {
    svg.append(s('line', { x1: left, x2: wide - right, y1: y(n), y2: y(n), class: 'grid' }), label(left - 6, y(n) + 4, round(n), 'end', 'faint-text'));
  }
  svg.append(s('line', { x1: left, x2: wide - right, y1: y(0), y2: y(0), class: 'axis' }));
  const room = Math.max(1, Math.ceil(44 / Math.max(0.01, one)));
  columns.forEach((column, i) => {
    const x = left + i * one,
      words = `stage ${column.number} ${
        column.row.pass || column.row.name
      }: ${column.row.added} new, ${column.row.removed} gone, ${column.row.modified} changed`;
    const place = titled(
      s(
        'g',
        { class: 'column' },
        s('rect', { x, y: top - 10, width: one, height: high - bottom - top + 10, class: 'column-ground' }),
        s('rect', {
          x: x + (one > 4 ? 0.5 : 0),
          y: y(column.much),
          width: Math.max(0.8, one - (one > 4 ? 1 : 0)),
          height: Math.max(0, y(0) - y(column.much)),
          class: 'column-value',
        }),
      ),
      words,
    );
    place.addEventListener('click', () => pick(column));
    svg.append(place);
    if (i % room === 0 && x + 30 < wide && column.row.number !== null) svg.append(label(x, high - 8, column.number, 'start', 'faint-text'));
  });
  return svg;
}

/** Of a kernel what the dots show: measured where there is a profile, else expected, else the bound. null: unknown. */
export function roofline_time(roof: Roofline): { words: 'measured' | 'expected' | 'at least'; of: (op: Roofline['ops'][0]) => number | null } {
  if (roof.profile !== null) return { words: 'measured', of: (op) => op.measured };
  if (roof.ops.some((op) => op.expected !== null)) return { words: 'expected', of: (op) => op.expected };
  return { words: 'at least', of: (op) => op.seconds };
}

/** Kernels by flops a byte and flops a second below the GPU's roof: dots are as large as their time. */
export function roofline_chart(roof: Roofline, wide: number, high: number, pick: (op: Roofline['ops'][0]) => void): SVGElement {
  const left_margin = 52, right_margin = 14, top_margin = 26, bottom_margin = 40;
  const ops = roof.ops.filter((op) => op.flops > 0 && op.bytes > 0).sort((a, b) => b.seconds - a.seconds).slice(0, 1500),
    bend = roof.flops_per_s / roof.bytes_per_s;
  // What has next to no arithmetic is drawn at the edge.
  const xs = ops.map((op) => Math.max(1e-3, op.flops / op.bytes)),
    least = Math.log10(Math.min(bend / 10, ...xs)),
    most = Math.log10(Math.max(bend * 10, 3 * roof.matrix_flops_per_s / roof.bytes_per_s, ...xs));
  const matrix = roof.matrix_flops_per_s, top = Math.log10(Math.max(roof.flops_per_s, matrix) * 2), bottom = top - 6;
  const floor = high - bottom_margin,
    x = (v: number) => left_margin + Math.max(0, Math.log10(v) - least) / (most - least) * (wide - left_margin - right_margin),
    y = (v: number) => Math.min(floor, floor - (Math.log10(v) - bottom) / (top - bottom) * (floor - top_margin));
  const time = roofline_time(roof), left = 10 ** least, right = 10 ** most;
  const shown = ops.filter((op) => (time.of(op) ?? 0) > 0), slowest = shown.reduce((most, op) => Math.max(most, time.of(op) ?? 0), 1e-12);
  const svg = picture(
    wide,
    high,
    `Roofline of ${roof.device}: ${shown.length} kernels, flops a second over flops a byte; the roof is ${bytes(roof.bytes_per_s)} a second up to ${
      bend.toPrecision(3)
    } flops a byte, then ${amount(roof.flops_per_s)}flop a second`,
  );
  const every = Math.max(1, Math.ceil((most - least) * 44 / (wide - left_margin)));
  for (let e = Math.ceil(least); e <= most; e++) {
    svg.append(
      s('line', { x1: x(10 ** e), x2: x(10 ** e), y1: top_margin, y2: floor, class: 'grid' }),
      ...(e % every === 0
        ? [label(x(10 ** e), floor + 15, e >= -2 && e < 4 ? String(Number((10 ** e).toPrecision(1))) : `1e${e}`, 'middle', 'faint-text')]
        : []),
    );
  }
  for (let e = Math.ceil(bottom); e <= top; e++) {
    svg.append(
      s('line', { x1: left_margin, x2: wide - right_margin, y1: y(10 ** e), y2: y(10 ** e), class: 'grid' }),
      label(left_margin - 6, y(10 ** e) + 4, round(10 ** e), 'end', 'faint-text'),
    );
  }
  svg.append(label(wide - right_margin, high - 8, 'flops a byte', 'end', 'faint-text'), label(4, 14, 'flops a second', 'start', 'faint-text'));
  for (const op of shown) {
    const taken = time.of(op) as number;
    const dot = titled(
      s('circle', {
        cx: x(op.flops / op.bytes),
        cy: y(op.flops / taken),
        r: 3 + 9 * Math.sqrt(Math.min(1, taken / slowest)),
        class: 'dot ' + time.words.replace(' ', '-'),
      }),
      `${op.name.slice(0, 200)}: ${time.words} ${seconds(taken)}, ${amount(op.flops)} flops, ${bytes(op.bytes)}`,
    );
    dot.addEventListener('click', () => pick(op));
    svg.append(dot);
  }
  svg.append(
    s('path', { d: `M${x(left)} ${y(left * roof.bytes_per_s)}L${x(bend)} ${y(roof.flops_per_s)}L${x(right)} ${y(roof.flops_per_s)}`, class: 'roof' }),
    label(x(right), y(roof.flops_per_s) + 14, `${amount(roof.flops_per_s)}flop/s`, 'end'),
  );
  if (matrix > roof.flops_per_s && matrix / roof.bytes_per_s < right) {
    svg.append(
      s('path', { d: `M${x(bend)} ${y(roof.flops_per_s)}L${x(matrix / roof.bytes_per_s)} ${y(matrix)}L${x(right)} ${y(matrix)}`, class: 'roof matrix' }),
      label(x(right), y(matrix) - 5, `products ${amount(matrix)}flop/s`, 'end'),
    );
  }
  return svg;
}

export interface StreamSum {
  name: string;
  count: number;
  busy: number;
  waits: number; // of async dones
}

/** Thunks that hold no others, by stream: how many, how long, and how long the stream waits for others. */
export function stream_sums(answer: Thunks): { sums: StreamSum[]; leaves: Thunks['thunks'] } {
  const sums = new Map(answer.streams.map((name): [string, StreamSum] => [name, { name, count: 0, busy: 0, waits: 0 }]));
  const leaves = answer.thunks.filter((one, i) => (answer.thunks[i + 1]?.depth ?? 0) <= one.depth);
  for (const one of leaves) {
    const sum = sums.get(one.stream);
    if (!sum) continue;
    if (one.kind === 'kAsyncDone') sum.waits += one.seconds;
    else {
      sum.count++;
      sum.busy += one.seconds;
    }
  }
  return { sums: [...sums.values()], leaves };
}

/** A lane a stream, over time; waits for another stream are drawn hollow. Bars that share pixels are one. */
export function thunks_chart(answer: Thunks, wide: number, pick: (thunk: Thunks['thunks'][0]) => void): SVGElement {
  const lane = 38, bar_high = 18, right = 8, { sums, leaves } = stream_sums(answer);
  const end = leaves.reduce((most, one) => Math.max(most, one.start + one.seconds), 1e-12), high = lane * sums.length + 20;
  const x = (time: number) => time / end * (wide - right);
  const svg = picture(
    wide,
    high,
    `Thunks over ${seconds(end)}, a lane a stream: ${
      sums.map((one) => `${one.name} ${seconds(one.busy)} of work, ${seconds(one.waits)} of waiting`).join('; ')
    }`,
  );
  sums.forEach((sum, i) => {
    const top = i * lane + 15;
    svg.append(label(0, top - 4, `${sum.name}: ${seconds(sum.busy)}${sum.waits > 0 ? `, waits ${seconds(sum.waits)}` : ''}`, 'start', 'faint-text'));
    svg.append(s('rect', { x: 0, y: top, width: wide - right, height: bar_high, class: 'bar-ground' }));
    const mine = leaves.filter((one) => one.stream === sum.name && one.seconds > 0).sort((a, b) => a.start - b.start);
    for (let k = 0; k < mine.length;) {
      const first = mine[k], wait = first.kind === 'kAsyncDone', from = x(first.start);
      let to = x(first.start + first.seconds), longest = first, many = 1;
      for (k++; k < mine.length && x(mine[k].start) < from + 2 && (mine[k].kind === 'kAsyncDone') === wait; k++) {
        to = Math.max(to, x(mine[k].start + mine[k].seconds));
        if (mine[k].seconds > longest.seconds) longest = mine[k];
        many++;
      }
      const drawn = titled(
        s('rect', {
          x: from,
          y: top,
          width: Math.max(0.7, to - from - (to - from > 3 ? 0.7 : 0)),
          height: bar_high,
          class: `thunk-bar ${wait ? 'is-wait' : sum.name.split('[')[0]}`,
        }),
        `${longest.name.slice(0, 200)} (${longest.kind}): ${seconds(longest.seconds)}${wait ? ' of waiting' : ''}${
          many > 1 ? `, and ${many - 1} more here` : ''
        }`,
      );
      drawn.addEventListener('click', () => pick(longest));
      svg.append(drawn);
    }
  });
  svg.append(label(0, high - 5, '0', 'start', 'faint-text'), label(wide - right, high - 5, seconds(end), 'end', 'faint-text'));
  return svg;
}
