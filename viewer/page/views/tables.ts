// Fusion decisions and links between modules: lists whose entries jump.
import { Decision, Row } from '../protocol';
import { add, fill, foreign, h, link, plural } from '../dom';
import { Host, View } from '../host';
import { Place } from '../session';
import { virtual_list, VirtualList } from '../virtual';

export class FusionView implements View {
  readonly name = 'fusion' as const;
  readonly element: HTMLElement;
  private head = h('div', { class: 'toolbar' });
  private list: VirtualList;
  private all: Decision[] = [];
  private shown: Decision[] = [];
  private rows: Row[] = [];
  private made = -1;
  private filter = h('input', {
    type: 'search',
    placeholder: 'name or reason',
    'aria-label': 'Show decisions with these words',
    oninput: () => this.refilter(),
  });
  private verdict = h(
    'select',
    { 'aria-label': 'Which decisions', onchange: () => this.refilter() },
    h('option', { value: '' }, 'all'),
    h('option', { value: 'fused' }, 'fused'),
    h('option', { value: 'declined' }, 'declined'),
  );

  constructor(private host: Host) {
    this.list = virtual_list(46, (i) => this.row(i), { class: 'virtual', role: 'list', 'aria-label': 'Fusion decisions' });
    this.element = h('section', { class: 'view search-view', 'aria-label': 'Fusion decisions' }, this.head, this.list.element);
  }

  async show(place: Place, turn: number): Promise<void> {
    if (this.made === place.at.module) return;
    const [{ decisions }, rows] = await Promise.all([this.host.engine.decisions({ module: place.at.module }), this.host.session.rows(place.at.module)]);
    if (!this.host.session.fresh(turn)) return;
    this.made = place.at.module;
    this.all = decisions;
    this.rows = rows;
    const fused = decisions.filter((one) => one.verdict === 'fused').length;
    fill(
      this.head,
      decisions.length ? `${fused} fused, ${decisions.length - fused} declined ` : 'This recording has no fusion decision. ',
      decisions.length ? this.verdict : null,
      decisions.length ? this.filter : null,
    );
    this.refilter();
  }

  private refilter(): void {
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean), verdict = this.verdict.value;
    this.shown = this.all.filter((one) =>
      (!verdict || one.verdict === verdict) && words.every((word) => (one.producer + ' ' + one.consumer + ' ' + one.why).toLowerCase().includes(word))
    );
    this.list.set(this.shown.length);
  }

  private row(i: number): HTMLElement {
    const one = this.shown[i];
    const state = one.row === null ? null : this.rows[one.row]?.state ?? null; // behind the pass; the two are in front of it
    const at = state ? { at: { module: this.made, state: state - 1 }, against: null } : {};
    const op = (id: number | null, name: string) =>
      id !== null
        ? link(foreign(name, 60), () => {
          void this.host.select(id, name, { ...at, view: 'graph' });
        })
        : foreign(name, 60);
    return h(
      'div',
      { class: 'hit', role: 'listitem' },
      h(
        'div',
        null,
        h('span', { class: 'mark ' + one.verdict }, one.verdict === 'fused' ? '✓ ' : '✗ '),
        op(one.producer_id, one.producer),
        one.consumer ? h('span', null, ' → ', op(one.consumer_id, one.consumer)) : '',
      ),
      h('div', { class: 'faint' }, foreign(one.why, 240)),
    );
  }
}

export class LinksView implements View {
  readonly name = 'links' as const;
  readonly element = h('section', { class: 'view document', 'aria-label': 'Links between modules' });
  private made = false;
  constructor(private host: Host) {}

  async show(_: Place, turn: number): Promise<void> {
    if (this.made) return;
    const { modules, links } = await this.host.engine.links();
    if (!this.host.session.fresh(turn)) return;
    this.made = true;
    const name = new Map(modules.map((m) => [m.module, m.name]));
    const to = (module: number) =>
      link(foreign(name.get(module) ?? `module ${module}`, 50), () => {
        void this.host.go({ at: { module, state: -1 }, view: 'graph', op: null, name: '', open: null, all: false, against: null });
      });
    const page = h(
      'div',
      { class: 'page wide' },
      h('h2', null, links.length ? plural(links.length, 'link') : 'No links'),
      h(
        'p',
        { class: 'faint' },
        links.length
          ? 'A result of one module that comes in as a parameter of another.'
          : 'Results of one module that come in as parameters of another would be listed here.',
      ),
    );
    if (links.length) {
      add(
        page,
        h(
          'table',
          { class: 'table' },
          h('thead', null, h('tr', null, ...['from', 'result', 'to', 'parameter', 'how sure', 'why'].map((t) => h('th', { scope: 'col' }, t)))),
          h(
            'tbody',
            null,
            ...links.slice(0, 3000).map((one) =>
              h(
                'tr',
                null,
                h('td', null, to(one.from)),
                h('td', null, foreign(one.result, 60)),
                h('td', null, to(one.to)),
                h('td', null, foreign(one.parameter, 60)),
                h('td', null, foreign(one.confidence, 30)),
                h('td', null, foreign(one.why, 200)),
              )
            ),
          ),
        ),
      );
    }
    fill(this.element, page);
  }
}
