// The first page: where time and memory go, what passes did, what was found. What is there at once is drawn at once; the
// rest is asked for one after the other while one looks, as long as one looks.
import { Memory, Overview, Roofline, Row, StateRef, Summary } from '../protocol';
import { add, fill, foreign, h, link, plural } from '../dom';
import { Host, View } from '../host';
import { By, Card, figures, findings_card, fusion_card, memory_card, passes_card, roofline_card, thunks_card, time_card } from './first_cards';

const most_at_once = 100_000; // instructions: of larger modules each figure is asked for by a button

export class OverviewView implements View {
  readonly name = 'overview' as const;
  readonly element = h('section', { class: 'view document', 'aria-label': 'Overview', tabIndex: 0 });
  private made = '';
  private running = false;
  private work: (() => Promise<void>)[] = [];
  constructor(private host: Host) {}

  async show(_: unknown, turn: number): Promise<void> {
    const session = this.host.session,
      module = session.place.at.module,
      key = module + ':' + session.modules.map((m) => `${m.module}.${m.states}.${m.instructions}.${m.name}`).join();
    if (this.made !== key) {
      const rows = await session.rows(module).catch((): Row[] => []);
      if (!session.fresh(turn)) return;
      this.made = key;
      this.begin(module, rows);
    }
    void this.go_on(key);
  }

  /** What is left to ask, until one looks at something else. */
  private async go_on(key: string): Promise<void> {
    if (this.running) return;
    this.running = true;
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0))); // what is there is painted first
    while (this.work.length && this.made === key && this.host.session.place.view === 'overview') await (this.work.shift() as () => Promise<void>)();
    this.running = false;
    if (this.work.length && this.made !== key && this.host.session.place.view === 'overview') void this.go_on(this.made);
  }

  private begin(module: number, rows: Row[]): void {
    const session = this.host.session,
      info = session.info(module),
      at: StateRef = { module, state: Math.max(0, (info?.states ?? 1) - 1) };
    const head = h('div', null), words = h('details', { class: 'section words-of-it' }, h('summary', null, 'The same in words'));
    const time = new Card('Where time goes'),
      memory = new Card('Memory over time', 'of-memory'),
      passes = new Card('What passes changed', 'of-passes'),
      found = new Card('Findings'),
      roof = new Card('Roofline', 'of-roofline'),
      fusion = new Card('Fusion: kept apart', 'of-fusion'),
      thunks = new Card('Thunks by stream', 'of-thunks');
    let summary: Summary | null = null, live: Memory | null = null;
    const roofline = (): Promise<Roofline> => this.host.engine.roofline({ at }); // kept by the session
    const refigure = () => fill(head, figures(summary, live, rows, info?.instructions ?? 0));
    const ask = async <T>(card: Card, question: () => Promise<T>, show: (answer: T) => HTMLElement[]) => {
      try {
        const answer = await question();
        card.fill(show(answer));
      } catch (error) {
        card.failed(error);
      }
    };
    const by_key = (by: By) =>
      ask(time, () => this.host.engine.summary({ at, by }), (answer) => {
        summary = answer;
        return time_card(this.host, at, answer, (other) => {
          void by_key(other);
        });
      });
    const several = session.modules.length > 1;
    fill(
      this.element,
      h(
        'div',
        { class: 'page wide first-page' },
        h('h1', null, foreign(info?.name ?? 'What is open', 200)),
        head,
        this.primer(),
        several ? this.modules() : null,
        time.element,
        found.element,
        h('div', { class: 'cards' }, h('div', null, memory.element, fusion.element), h('div', null, passes.element, roof.element, thunks.element)),
        words,
        several ? null : this.modules(),
      ),
    );
    refigure();
    passes.fill(passes_card(this.host, module, rows));
    if (!info?.states) {
      for (const card of [time, memory, found, roof, fusion, thunks]) card.failed('no stage can be read');
      this.work = [];
      return;
    }
    const steps: [Card, () => Promise<void>][] = [
      [time, async () => {
        await by_key('class');
        refigure();
      }],
      [memory, async () => {
        await ask(memory, () => this.host.engine.memory({ at }), (answer) => {
          live = answer;
          return memory_card(this.host, at, answer);
        });
        refigure();
      }],
      [found, () =>
        ask(found, () => this.host.engine.overview({ module }), (answer) => {
          this.in_words(words, answer, module);
          return findings_card(this.host, at, answer);
        })],
      [roof, () => ask(roof, () => roofline(), (answer) => roofline_card(this.host, at, answer))],
      [fusion, () =>
        ask(fusion, async () => {
          const { decisions } = await this.host.engine.decisions({ module });
          return { decisions, kernels: decisions.length ? await roofline().catch(() => null) : null };
        }, ({ decisions, kernels }) => fusion_card(this.host, module, decisions, kernels))],
      [thunks, () => ask(thunks, () => this.host.engine.thunks({ at }), (answer) => thunks_card(this.host, at, answer))],
    ];
    const now = info.instructions <= most_at_once;
    this.work = now ? steps.map(([, step]) => step) : [];
    if (!now) {
      for (const [card, step] of steps) {
        card.offer(info.instructions, () => {
          this.work.push(step);
          void this.go_on(this.made);
        });
      }
    }
  }

  private in_words(place: HTMLElement, overview: Overview, module: number): void {
    for (const { heading, rows } of overview.lines) {
      add(
        place,
        h(
          'section',
          null,
          heading ? h('h3', null, foreign(heading, 160)) : null,
          h(
            'ul',
            { class: 'lines' },
            ...rows.slice(0, 400).map((row) => {
              const text = foreign(row.text, 1200);
              const last = (this.host.session.info(row.module ?? module)?.states ?? 0) - 1;
              const leads = row.id !== null || (row.state !== null && row.state !== last) || (row.module !== null && row.module !== module);
              return h(
                'li',
                null,
                leads ? link(text, () => this.follow(row)) : text,
                row.source && !row.text.includes(row.source) ? h('span', { class: 'source' }, ' ', foreign(row.source, 160)) : null,
              );
            }),
          ),
        ),
      );
    }
  }

  private follow(row: { id: number | null; module: number | null; state: number | null }): void {
    const module = row.module ?? this.host.session.place.at.module;
    const state = row.state ?? -1;
    void this.host.go({ at: { module, state }, op: row.id, name: '', view: 'graph', open: null, all: false, against: null });
  }

  private primer(): HTMLElement {
    const step = (title: string, text: string, view: 'graph' | 'diff' | 'text' | 'fusion' | 'bench') =>
      h(
        'li',
        null,
        link(title, () => {
          void this.host.go({ view });
        }),
        ' — ',
        text,
      );
    return h(
      'details',
      { class: 'primer' },
      h('summary', null, 'New to this?'),
      h(
        'p',
        null,
        'XLA made a module of the program (a jitted function, say): a graph of operations called HLO. Then it ran passes over it, one after the other; each may rewrite the graph. The list at the left is those passes, and every state of the module in between is a stage that you can look at.',
      ),
      h(
        'ol',
        null,
        step(
          'The graph',
          'boxes are operations, lines are arrays that flow from one to the next. Green is new since the stage before, red goes away next. Step with ← and →.',
          'graph',
        ),
        step('What a pass did', 'every change of a stage as a list, with the rule that made it.', 'diff'),
        step('The text', 'the same module as HLO.', 'text'),
        step('Fusion', 'why operations were put into one kernel, and why not.', 'fusion'),
        step('Try it', 'change the module, run passes on it, see the values.', 'bench'),
      ),
    );
  }

  private modules(): HTMLElement | null {
    const { modules, place } = this.host.session, sorted = [...modules].sort((a, b) => b.instructions - a.instructions);
    if (!modules.length) return null;
    return h(
      'section',
      null,
      h('h2', null, plural(modules.length, 'module')),
      h(
        'div',
        { class: 'modules-box', tabIndex: 0, role: 'region', 'aria-label': 'Modules' },
        h(
          'table',
          { class: 'table' },
          h('thead', null, h('tr', null, ...['module', 'function', 'stages', 'instructions', 'pipeline', 'notes'].map((t) => h('th', { scope: 'col' }, t)))),
          h(
            'tbody',
            null,
            ...sorted.slice(0, 1000).map((m) =>
              h(
                'tr',
                {
                  class: m.module === place.at.module && modules.length > 1 ? 'here' : null,
                  'aria-current': m.module === place.at.module && modules.length > 1 ? 'true' : null,
                },
                h(
                  'td',
                  null,
                  link(foreign(m.name || `module ${m.module}`, 60), () => {
                    void this.host.go({
                      at: { module: m.module, state: -1 },
                      view: modules.length > 1 ? 'overview' : 'graph',
                      op: null,
                      name: '',
                      open: null,
                      all: false,
                      against: null,
                    });
                  }),
                ),
                h('td', null, foreign(m.function, 50)),
                h('td', { class: 'n' }, m.states || ''),
                h(
                  'td',
                  { class: 'n' },
                  m.states
                    ? (m.instructions_first !== m.instructions ? m.instructions_first.toLocaleString('en') + ' → ' : '') + m.instructions.toLocaleString('en')
                    : '',
                ),
                h('td', null, foreign(m.pipeline, 40)),
                h('td', null, foreign(m.problems.join('; '), 120)),
              )
            ),
          ),
        ),
      ),
    );
  }
}
