// Search: one line of words, its hits, and what the words may be.
import { Hit } from '../protocol';
import { fill, foreign, h, link, plural } from '../dom';
import { Host, View } from '../host';
import { Place } from '../session';
import { virtual_list, VirtualList } from '../virtual';

const words: [string, string][] = [
  ['dot add.3', 'parts of names; all words must hold'],
  ['op:fusion', 'opcode'],
  ['kind:kLoop', 'kind of a fusion'],
  ['shape:f32[8', 'how the shape begins'],
  ['name:fusion.3', 'name alone'],
  ['scope:layer_3', 'part of op_name: the function it was written in'],
  ['attr:metadata', 'part of an attribute'],
  ['bytes>1M', 'size of the result (k, M, G)'],
  ['flops>1G', 'operations'],
  ['user>3', 'more than three users'],
  ['in:main', 'computation'],
  ['id:17', 'number'],
  ['-op:constant', 'not so'],
  ['op:fusion kind:kLoop bytes>1M', 'together'],
];

export class SearchView implements View {
  readonly name = 'search' as const;
  readonly element: HTMLElement;
  hits: Hit[] = [];
  private list: VirtualList;
  private head = h('div', { class: 'toolbar', 'aria-live': 'polite' });
  private help: HTMLElement;
  private made = '';

  constructor(private host: Host, ask: (query: string) => void) {
    this.list = virtual_list(44, (i) => this.row(i), { class: 'virtual', role: 'listbox', 'aria-label': 'Hits' });
    this.help = h(
      'div',
      { class: 'page' },
      h('h2', null, 'What to search for'),
      h('dl', { class: 'words' }, ...words.flatMap(([word, tells]) => [h('dt', null, link(h('code', null, word), () => ask(word))), h('dd', null, tells)])),
    );
    this.element = h('section', { class: 'view search-view', 'aria-label': 'Search' }, this.head, this.list.element, this.help);
  }

  async show(place: Place, turn: number): Promise<void> {
    const key = JSON.stringify([place.at, place.query]);
    if (!place.query.trim()) {
      this.hits = [];
      this.made = '';
      this.host.session.marked = null;
      fill(this.head, 'Nothing asked yet');
      this.list.set(0);
      this.list.element.hidden = true;
      this.help.hidden = false;
      return;
    }
    if (key !== this.made) {
      performance.mark('hlo:search:from');
      const { hits, total } = await this.host.engine.search({ at: place.at, query: place.query, limit: 2000 });
      if (!this.host.session.fresh(turn)) return;
      this.made = key;
      this.hits = hits;
      this.host.session.marked = { at: place.at, ids: hits.map((hit) => hit.id) };
      fill(
        this.head,
        plural(total, 'hit'),
        total > hits.length ? `, the first ${hits.length} of them` : '',
        ` in ${this.host.session.stage_words(place.at)} for `,
        foreign(place.query, 100, 'strong'),
      );
      performance.measure('hlo:search', 'hlo:search:from');
    }
    this.list.element.hidden = !this.hits.length;
    this.help.hidden = this.hits.length > 0;
    this.list.set(this.hits.length);
  }

  private row(i: number): HTMLElement {
    const hit = this.hits[i];
    return h(
      'div',
      {
        class: 'hit' + (hit.id === this.host.session.place.op ? ' here' : ''),
        role: 'option',
        onclick: () => {
          void this.host.select(hit.id, hit.name, { view: 'graph' });
        },
      },
      h(
        'div',
        null,
        foreign(hit.name, 70, 'strong'),
        ' ',
        h('span', { class: 't-opcode' }, foreign(hit.opcode, 40)),
        ' ',
        h('span', { class: 't-shape' }, foreign(hit.shape, 80)),
      ),
      h('div', { class: 'faint' }, foreign(hit.op_name || hit.computation, 140), ` · line ${hit.line + 1}`),
    );
  }

  key(event: KeyboardEvent): boolean {
    if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp' || !this.hits.length) return false;
    const at = this.hits.findIndex((hit) => hit.id === this.host.session.place.op),
      next = Math.max(0, Math.min(this.hits.length - 1, at + (event.key === 'ArrowDown' ? 1 : -1)));
    void this.host.select(this.hits[next].id, this.hits[next].name);
    this.list.show(next, 'nearest');
    return true;
  }
}
