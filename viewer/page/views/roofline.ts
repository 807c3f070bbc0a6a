// Roofline: which ops are bound by memory, which by arithmetic, and how far from the roof what was measured is.
import { Roofline } from '../protocol';
import { chart, roofline_chart } from '../charts';
import { add, amount, bytes, fill, foreign, h, link, seconds } from '../dom';
import { Host, View } from '../host';
import { Place } from '../session';

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
    const slow = [...roof.ops].sort((a, b) => time(b) - time(a)),
      total = profiled ? (roof.measured_seconds ?? 0) + (roof.between_seconds ?? 0) : slow.reduce((sum, op) => sum + op.seconds, 0);
    const picker = roof.devices.length && this.host.session.can_do
      ? h('select', {
        'aria-label': 'Device',
        onchange: () => {
          this.device = (picker as HTMLSelectElement).value;
          void this.host.go({}, 'replace');
        },
      }, ...roof.devices.map((name) => h('option', { value: name, selected: name === roof.device }, name.slice(0, 60))))
      : null;
    const page = h(
      'div',
      { class: 'page wide' },
      h('h2', null, picker ?? foreign(roof.device, 80)),
      h(
        'p',
        { class: 'faint' },
        `${amount(roof.flops_per_s)}flop/s, ${
          bytes(roof.bytes_per_s)
        }/s. Left of the bend an op waits for memory, right of it for arithmetic; a larger dot takes more time.`,
      ),
      roof.profile !== null
        ? h(
          'p',
          null,
          'Measured, ',
          foreign(roof.profile, 200),
          `: ${seconds(roof.measured_seconds ?? 0)} of kernels`,
          roof.between_seconds ? ` and ${seconds(roof.between_seconds)} between them` : '',
          `; at least ${seconds(roof.seconds)}.`,
        )
        : null,
      chart((wide) =>
        roofline_chart(roof, wide, 420, (op) => {
          void this.host.select(op.id, op.name, { view: 'graph' });
        })
      ),
      h('h3', null, 'What takes the time'),
    );
    add(
      page,
      h(
        'table',
        { class: 'table' },
        h(
          'thead',
          null,
          h(
            'tr',
            null,
            ...['op', ...(profiled ? ['measured', 'at least'] : ['time']), 'share', 'flops', 'bytes', 'flops a byte', 'bound by'].map((t) =>
              h('th', { scope: 'col' }, t)
            ),
          ),
        ),
        h(
          'tbody',
          null,
          ...slow.slice(0, 150).map((op) =>
            h(
              'tr',
              null,
              h(
                'td',
                null,
                link(foreign(op.name, 60), () => {
                  void this.host.select(op.id, op.name, { view: 'graph' });
                }),
              ),
              profiled ? h('td', { class: 'n' }, op.measured !== null ? seconds(op.measured) : '—') : null,
              h('td', { class: 'n' }, seconds(op.seconds), profiled ? '' : ' est.'),
              h('td', { class: 'n' }, total ? (100 * time(op) / total).toFixed(1) + ' %' : ''),
              h('td', { class: 'n' }, amount(op.flops)),
              h('td', { class: 'n' }, bytes(op.bytes)),
              h('td', { class: 'n' }, op.bytes ? (op.flops / op.bytes).toPrecision(3) : '—'),
              h('td', null, op.bound === 'compute' ? 'arithmetic' : op.bound),
            )
          ),
        ),
      ),
    );
    fill(this.element, page);
  }
}
