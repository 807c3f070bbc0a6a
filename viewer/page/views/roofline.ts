// Roofline: which ops are bound by memory, which by arithmetic, and how far from the roof what was measured is.
import { Roofline } from '../protocol';
import { add, amount, bytes, fill, foreign, h, link, s, seconds } from '../dom';
import { Host, View } from '../host';
import { Place } from '../session';

const wide = 900, high = 420, margin = 46;

export class RooflineView implements View {
  readonly name = 'roofline' as const;
  readonly element = h('section', { class: 'view document', 'aria-label': 'Roofline' });
  private made = '';
  private device = '';
  constructor(private host: Host) {}

  async show(place: Place, turn: number): Promise<void> {
    const key = JSON.stringify([place.at, this.device]);
    if (this.made === key) return;
    const roof = await this.host.session.engine.roofline(this.device ? { at: place.at, device: this.device } : { at: place.at });
    if (!this.host.session.fresh(turn)) return;
    this.made = key;
    // What a profile has not seen took no time that is known; without a profile all is by the data sheet.
    const profiled = roof.profile !== null, time = (op: Roofline['ops'][0]) => profiled ? op.measured ?? 0 : op.seconds;
    const slow = [...roof.ops].sort((a, b) => time(b) - time(a)), total = profiled ? (roof.measured_seconds ?? 0) + (roof.between_seconds ?? 0) : slow.reduce((sum, op) => sum + op.seconds, 0);
    const picker = roof.devices.length && this.host.session.can_do ? h('select', { 'aria-label': 'Device', onchange: () => { this.device = (picker as HTMLSelectElement).value; void this.host.go({}, 'replace'); } }, ...roof.devices.map(name => h('option', { value: name, selected: name === roof.device }, name.slice(0, 60)))) : null;
    const page = h('div', { class: 'page wide' }, h('h2', null, picker ?? foreign(roof.device, 80)), h('p', { class: 'faint' }, `${amount(roof.flops_per_s)}flop/s, ${bytes(roof.bytes_per_s)}/s. Left of the bend an op waits for memory, right of it for arithmetic; a larger dot takes more time.`),
      roof.profile !== null ? h('p', null, 'Measured, ', foreign(roof.profile, 200), `: ${seconds(roof.measured_seconds ?? 0)} of kernels`, roof.between_seconds ? ` and ${seconds(roof.between_seconds)} between them` : '', `; at least ${seconds(roof.seconds)}.`) : null,
      this.chart(roof), h('h3', null, 'What takes the time'));
    add(page, h('table', { class: 'table' }, h('thead', null, h('tr', null, ...['op', ...(profiled ? ['measured', 'at least'] : ['time']), 'share', 'flops', 'bytes', 'flops a byte', 'bound by'].map(t => h('th', { scope: 'col' }, t)))),
      h('tbody', null, ...slow.slice(0, 150).map(op => h('tr', null, h('td', null, link(foreign(op.name, 60), () => { void this.host.select(op.id, op.name, { view: 'graph' }); })), profiled ? h('td', { class: 'n' }, op.measured !== null ? seconds(op.measured) : '—') : null, h('td', { class: 'n' }, seconds(op.seconds), profiled ? '' : ' est.'),
        h('td', { class: 'n' }, total ? (100 * time(op) / total).toFixed(1) + ' %' : ''), h('td', { class: 'n' }, amount(op.flops)), h('td', { class: 'n' }, bytes(op.bytes)), h('td', { class: 'n' }, op.bytes ? (op.flops / op.bytes).toPrecision(3) : '—'),
        h('td', null, op.bound === 'compute' ? 'arithmetic' : op.bound))))));
    fill(this.element, page);
  }

  private chart(roof: Roofline): HTMLElement {
    const ops = roof.ops.filter(op => op.flops > 0 && op.bytes > 0).sort((a, b) => b.seconds - a.seconds).slice(0, 1500), bend = roof.flops_per_s / roof.bytes_per_s;
    const xs = ops.map(op => op.flops / op.bytes), least = Math.log10(Math.min(bend / 10, ...xs)), most = Math.log10(Math.max(bend * 10, 3 * roof.matrix_flops_per_s / roof.bytes_per_s, ...xs));
    const matrix = roof.matrix_flops_per_s, top = Math.log10(Math.max(roof.flops_per_s, matrix) * 2), bottom = top - 6;
    const x = (v: number) => margin + (Math.log10(v) - least) / (most - least) * (wide - 2 * margin), y = (v: number) => Math.min(high - margin, high - margin - (Math.log10(v) - bottom) / (top - bottom) * (high - 2 * margin));
    const slowest = Math.max(...ops.map(op => op.measured ?? op.seconds), 1e-12);
    const left = 10 ** least, right = 10 ** most;
    const picture = s('svg', { viewBox: `0 0 ${wide} ${high}`, class: 'chart', role: 'img', 'aria-label': 'Roofline: flops a second over flops a byte' },
      s('path', { d: `M${x(left)} ${y(left * roof.bytes_per_s)}L${x(bend)} ${y(roof.flops_per_s)}L${x(right)} ${y(roof.flops_per_s)}`, class: 'roof' }),
      s('line', { x1: margin, x2: wide - margin, y1: high - margin, y2: high - margin, class: 'axis' }), s('line', { x1: margin, x2: margin, y1: margin, y2: high - margin, class: 'axis' }));
    if (matrix > roof.flops_per_s && matrix / roof.bytes_per_s < right) picture.append(s('path', { d: `M${x(bend)} ${y(roof.flops_per_s)}L${x(matrix / roof.bytes_per_s)} ${y(matrix)}L${x(right)} ${y(matrix)}`, class: 'roof matrix' }));
    for (let e = Math.ceil(least); e <= most; e++) picture.append(s('text', { x: x(10 ** e), y: high - margin + 16, class: 'chart-text', 'text-anchor': 'middle' }, e >= 0 && e < 5 ? String(10 ** e) : `1e${e}`));
    for (let e = Math.ceil(bottom); e <= top; e++) picture.append(s('text', { x: margin - 4, y: y(10 ** e) + 4, class: 'chart-text', 'text-anchor': 'end' }, amount(10 ** e).replace('.00', '')));
    picture.append(s('text', { x: wide / 2, y: high - 8, class: 'chart-text', 'text-anchor': 'middle' }, 'flops a byte'), s('text', { x: margin, y: margin - 10, class: 'chart-text' }, 'flops a second'));
    for (const op of ops) {
      const time = roof.profile !== null ? op.measured ?? 0 : op.seconds;
      if (!(time > 0)) continue;
      const dot = s('circle', { cx: x(op.flops / op.bytes), cy: y(op.flops / time), r: 3 + 9 * Math.sqrt(Math.min(1, time / slowest)), class: op.measured !== null ? 'dot measured' : 'dot' }, s('title', {}, `${op.name.slice(0, 200)}: ${seconds(time)}, ${amount(op.flops)} flops, ${bytes(op.bytes)}`));
      dot.addEventListener('click', () => { void this.host.select(op.id, op.name, { view: 'graph' }); });
      picture.append(dot);
    }
    return h('div', { class: 'chart-box' }, picture as unknown as HTMLElement);
  }
}
