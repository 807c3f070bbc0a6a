// The first page: what `hlo-replay DIR` says, and for whoever never saw a dump, what there is to see.
import { Overview } from '../protocol';
import { add, fill, foreign, h, link, plural } from '../dom';
import { Host, View } from '../host';

export class OverviewView implements View {
  readonly name = 'overview' as const;
  readonly element = h('section', { class: 'view document', 'aria-label': 'Overview' });
  private made = '';
  constructor(private host: Host) {}

  async show(_: unknown, turn: number): Promise<void> {
    const module = this.host.session.place.at.module, key = module + ':' + this.host.session.modules.map(m => `${m.module}.${m.states}`).join();
    if (this.made === key) return;
    let overview: Overview = { title: 'What is open', lines: [] };
    try { overview = await this.host.engine.overview(this.host.session.can_do ? { module } : {}); } catch (error) { this.host.failed(error); }   // modules are listed all the same
    if (!this.host.session.fresh(turn)) return;
    this.made = key;
    const page = h('div', { class: 'page' }, h('h1', null, foreign(overview.title, 200)), this.primer());
    for (const { heading, rows } of overview.lines)
      add(page, h('section', null, h('h2', null, foreign(heading, 120)), h('ul', { class: 'lines' }, ...rows.slice(0, 400).map(row => {
        const text = foreign(row.text, 1200);
        const last = (this.host.session.info(row.module ?? module)?.states ?? 0) - 1;
        const leads = row.id !== null || (row.state !== null && row.state !== last) || (row.module !== null && row.module !== module);
        return h('li', null, leads ? link(text, () => this.follow(row)) : text, row.source && !row.text.includes(row.source) ? h('span', { class: 'source' }, ' ', foreign(row.source, 160)) : null);
      }))));
    add(page, this.modules());
    fill(this.element, page);
  }

  private follow(row: { id: number | null; module: number | null; state: number | null }): void {
    const module = row.module ?? this.host.session.place.at.module;
    const state = row.state ?? -1;
    void this.host.go({ at: { module, state }, op: row.id, name: '', view: 'graph', open: null, all: false, against: null });
  }

  private primer(): HTMLElement {
    const step = (title: string, text: string, view: 'graph' | 'diff' | 'text' | 'fusion' | 'bench') => h('li', null, link(title, () => { void this.host.go({ view }); }), ' — ', text);
    return h('details', { class: 'primer', open: true }, h('summary', null, 'New to this?'),
      h('p', null, 'XLA turned the program (a jitted function, say) into a module: a graph of operations called HLO. Then it ran passes over it, one after the other; each may rewrite the graph. The list at the left is those passes, and every state of the module in between is a stage that you can look at.'),
      h('ol', null, step('The graph', 'boxes are operations, lines are arrays that flow from one to the next. Green is new since the stage before, red goes away next. Step with ← and →.', 'graph'),
        step('What a pass did', 'every change of a stage as a list, with the rule that made it.', 'diff'), step('The text', 'the same module as HLO.', 'text'),
        step('Fusion', 'why operations were put into one kernel, and why not.', 'fusion'), step('Try it', 'change the module, run passes on it, see the values.', 'bench')));
  }

  private modules(): HTMLElement | null {
    const { modules } = this.host.session;
    if (!modules.length) return null;
    return h('section', null, h('h2', null, plural(modules.length, 'module')), h('table', { class: 'table' },
      h('thead', null, h('tr', null, ...['module', 'function', 'stages', 'instructions', 'pipeline', 'notes'].map(t => h('th', { scope: 'col' }, t)))),
      h('tbody', null, ...modules.slice(0, 1000).map(m => h('tr', null,
        h('td', null, link(foreign(m.name || `module ${m.module}`, 60), () => { void this.host.go({ at: { module: m.module, state: -1 }, view: 'graph', op: null, name: '', open: null, all: false, against: null }); })),
        h('td', null, foreign(m.function, 50)), h('td', { class: 'n' }, m.states || ''), h('td', { class: 'n' }, m.states ? (m.instructions_first !== m.instructions ? m.instructions_first.toLocaleString('en') + ' → ' : '') + m.instructions.toLocaleString('en') : ''), h('td', null, foreign(m.pipeline, 40)), h('td', null, foreign(m.problems.join('; '), 120)))))));
  }
}
