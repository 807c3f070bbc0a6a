// The shell: header, passes, view, op panel, stages; which view is shown and what the address says.
import { Engine, StateRef } from './protocol';
import { bdi_path, button, fill, foreign, h, link } from './dom';
import { FaultCard } from './fault';
import { Host, View } from './host';
import { help_dialog } from './keys';
import { handle_key } from './keyboard';
import { OpPanel } from './panel';
import { from_hash, keeping, Notice, Place, same_state, Session, to_hash, ViewName } from './session';
import { ScrubBar, Timeline } from './timeline';
import { BenchView } from './views/bench';
import { DiffView, FollowView, RewritesView } from './views/diff';
import { GraphView } from './views/graph';
import { FusionView, LinksView } from './views/tables';
import { MemoryView } from './views/memory';
import { OverviewView } from './views/overview';
import { RooflineView } from './views/roofline';
import { SearchView } from './views/search';
import { SideView } from './views/side';
import { TextView } from './views/text';
import { ThunksView } from './views/thunks';
import { Course, LessonView } from './lessons/view';
import { accept_drops } from './drop';

const titles: [ViewName, string][] = [
  ['overview', 'Overview'],
  ['graph', 'Graph'],
  ['text', 'Text'],
  ['diff', 'Changes'],
  ['rewrites', 'Rewrites'],
  ['side', 'Side by side'],
  ['follow', 'Follow'],
  ['bench', 'Bench'],
  ['fusion', 'Fusion'],
  ['memory', 'Memory'],
  ['thunks', 'Thunks'],
  ['roofline', 'Roofline'],
  ['links', 'Links'],
  ['search', 'Search'],
];

export class App implements Host {
  readonly session: Session;
  readonly graph: GraphView;
  readonly searching: SearchView;
  readonly rewrites: RewritesView;
  readonly bench: BenchView;
  readonly lessons: LessonView;
  readonly scrub: ScrubBar;
  readonly help = help_dialog();
  readonly search_box = h('input', {
    type: 'search',
    class: 'search',
    placeholder: 'Search  ( / )',
    'aria-label': 'Search: names, op:fusion, shape:f32[8, bytes>1M …',
    spellcheck: false,
    maxLength: 4000,
  });
  private views = new Map<ViewName, View>();
  private middle = h('main', { class: 'middle', id: 'view' });
  private tabs = h('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Views' });
  private notices = h('div', { class: 'notices', role: 'status', 'aria-live': 'polite' });
  private live = h('div', { class: 'reader', 'aria-live': 'polite' });
  private head = h('div', { class: 'title' });
  private where = h('div', { class: 'where' });
  private timeline: Timeline;
  private panel: OpPanel;
  private fault = new FaultCard(this);
  private typing = 0;
  private ended = false;
  private of_view: Element | null = null;

  constructor(engine: Engine, can_do: boolean, private restart: (() => Promise<Engine>) | null, private course: Course | null) {
    this.session = new Session(engine, can_do);
    this.graph = new GraphView(this);
    this.searching = new SearchView(this, (query) => {
      this.search_box.value = query;
      void this.search(query);
    });
    this.rewrites = new RewritesView(this);
    this.bench = new BenchView(this);
    this.lessons = new LessonView(this, course);
    const all: View[] = [
      this.graph,
      this.searching,
      this.rewrites,
      this.bench,
      new OverviewView(this),
      new TextView(this),
      new DiffView(this),
      new SideView(this),
      new FollowView(this),
      new FusionView(this),
      new MemoryView(this),
      new ThunksView(this),
      new RooflineView(this),
      new LinksView(this),
      this.lessons,
    ];
    for (const view of all) {
      view.element.hidden = true;
      this.views.set(view.name, view);
      this.middle.append(view.element);
    }
    this.timeline = new Timeline(this);
    this.panel = new OpPanel(this);
    this.scrub = new ScrubBar(this);
  }

  get engine(): Engine {
    return this.session.engine;
  }

  mount(root: HTMLElement): void {
    for (const [name, title] of titles) {
      this.tabs.append(h('button', {
        type: 'button',
        role: 'tab',
        id: 'tab-' + name,
        'aria-controls': 'view',
        data: { view: name },
        onclick: () => {
          void this.go({ view: name });
        },
      }, title));
    }
    this.search_box.addEventListener('input', () => {
      clearTimeout(this.typing);
      this.typing = window.setTimeout(() => {
        void this.search(this.search_box.value);
      }, 120);
    });
    this.search_box.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') {
        clearTimeout(this.typing);
        this.search_box.blur();
        void this.go({ view: 'graph' });
      }
      if (event.key === 'Enter') {
        clearTimeout(this.typing);
        const hit = this.searching.hits[0];
        void this.search(this.search_box.value).then(() => {
          const first = this.searching.hits[0] ?? hit;
          if (first) void this.select(first.id, first.name, { view: 'graph' });
        });
      }
      if (event.key === 'ArrowDown') {
        event.preventDefault();
        this.search_box.blur();
      }
    });
    const left = h('div', { class: 'pane left' }, this.timeline.element), right = h('div', { class: 'pane right' }, this.panel.element);
    const header = h(
      'header',
      { class: 'header' },
      this.head,
      h('span', { class: 'spring' }),
      this.search_box,
      button('◐', () => this.switch_theme(), { 'aria-label': 'Light or dark', title: 'Light or dark (x)' }),
      button('Open …', () => this.choose(), { title: 'Open a dump, a recording or modules from this machine' }),
      button('Link', () => {
        void this.copy_link();
      }, { title: 'Copy the address of what is shown' }),
      button('?', () => this.show_help(), { 'aria-label': 'Help', title: 'Keys (?)' }),
    );
    root.append(
      h('a', {
        class: 'skip',
        href: '#view',
        onclick: (event: Event) => {
          event.preventDefault();
          (this.middle.querySelector('[tabindex]') as HTMLElement | null)?.focus();
        },
      }, 'To the view'),
      header,
      h(
        'div',
        { class: 'body' },
        left,
        this.divider(left, 1),
        h('div', { class: 'centre' }, this.tabs, this.where, this.notices, this.fault.element, this.middle),
        this.divider(right, -1),
        right,
      ),
      this.scrub.element,
      this.help,
      this.live,
    );
    window.addEventListener('popstate', () => {
      void this.from_address('replace');
    });
    window.addEventListener('hashchange', () => {
      if (location.hash !== this.hash()) void this.from_address('replace');
    });
    document.addEventListener('keydown', (event) => handle_key(this, event));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      if (!document.documentElement.dataset.chosen) this.theme(matchMedia('(prefers-color-scheme: dark)').matches);
    });
    accept_drops(this);
  }

  /** A line between panes that is dragged, or moved by the arrow keys. */
  private divider(pane: HTMLElement, side: 1 | -1): HTMLElement {
    const set = (width: number) => {
      pane.style.width = `${Math.max(0, Math.min(width, window.innerWidth * 0.6))}px`;
      line.setAttribute('aria-valuenow', String(pane.offsetWidth));
      this.scrub.paint();
    };
    const line = h('div', {
      class: 'divider',
      role: 'separator',
      'aria-orientation': 'vertical',
      'aria-label': side === 1 ? 'Width of the passes' : 'Width of the op panel',
      'aria-valuenow': side === 1 ? 290 : 330,
      tabIndex: 0,
      onpointerdown: (event: PointerEvent) => {
        (event.target as Element).setPointerCapture(event.pointerId);
        event.preventDefault();
      },
      onpointermove: (event: PointerEvent) => {
        if (event.buttons & 1) set(side === 1 ? event.clientX : window.innerWidth - event.clientX);
      },
      ondblclick: () => set(pane.offsetWidth > 20 ? 0 : 300),
      onkeydown: (event: KeyboardEvent) => {
        const by = event.key === 'ArrowRight' ? 24 : event.key === 'ArrowLeft' ? -24 : 0;
        if (by) {
          event.stopPropagation();
          set(pane.offsetWidth + by * side);
        }
      },
    });
    return line;
  }

  async begin(): Promise<void> {
    await this.session.load();
    await this.from_address('replace');
  }

  /** Shows what the address says; what it does not say is as usual. */
  async from_address(how: 'push' | 'replace'): Promise<void> {
    const said = from_hash(location.hash), { modules } = this.session;
    const first = said.lesson === null && location.hash.length < 2 ? this.course?.first ?? null : said.lesson;
    if (first !== null) {
      await this.go({ view: 'lesson', lesson: first, step: said.step, query: said.query }, how);
      return;
    }
    if (!modules.length) {
      await this.go({ view: 'bench' }, how);
      return;
    }
    // Of a run's many modules the largest one is looked at first, as far as their sizes are known.
    const largest = location.hash.length < 2 ? modules.reduce((best, one) => one.instructions > best.instructions ? one : best) : null;
    const info = largest ?? modules.find((m) => m.module === said.module) ?? modules[0];
    const at = said.stage === null ? await this.session.in_module(info.module, null) : await this.session.numbered(info.module, said.stage);
    let op: number | null = null;
    if (said.op) {
      op = said.op === this.session.place.name && same_state(at, this.session.place.at)
        ? this.session.place.op
        : this.session.can_do
        ? await this.session.by_name(at, said.op).catch(() => null)
        : null;
      if (op === null) this.notice({ kind: 'note', message: `There is no op of the name ${said.op.slice(0, 200)} in ${this.session.stage_words(at)}.` });
    }
    if (said.query) this.search_box.value = said.query;
    const known = said.against && this.session.info(said.against.module)?.states ? await this.session.numbered(said.against.module, said.against.stage) : null;
    const fresh = said.stage === null && said.view === null;
    await this.go({
      at,
      op,
      name: op === null ? '' : said.op,
      view: said.view ?? (fresh && (modules.length > 1 || at.state > 0) ? 'overview' : 'graph'),
      open: said.open,
      all: said.all,
      against: known,
      query: said.query,
    }, how);
  }

  async go(change: Partial<Place>, how: 'push' | 'replace' = 'push'): Promise<void> {
    const session = this.session, old = session.place, turn = session.begin();
    const place: Place = { ...old, ...change };
    if (session.modules.length && (place.at.state < 0 || !session.info(place.at.module)?.states)) {
      try {
        place.at = await session.in_module(place.at.module, place.at.state < 0 ? null : place.at.state);
      } catch (error) {
        this.failed(error);
        return;
      }
      if (!session.fresh(turn)) return;
    }
    const stepped = !same_state(old.at, place.at);
    if (stepped) performance.mark('hlo:stage:from');
    if (stepped && change.op === undefined && old.op !== null && session.can_do && session.modules.length) await this.carry_op(old, place);
    if (place.op !== null && !place.name && session.can_do) place.name = await this.engine.op({ at: place.at, id: place.op }).then((op) => op.name, () => '');
    if (!session.fresh(turn)) return;
    // How stages are called stands in the rows.
    const unread = session.modules.length && place.view !== 'lesson' ? session.without_rows([place.at, place.against]) : [];
    for (const module of unread) await session.rows(module).catch(() => []);
    if (!session.fresh(turn)) return;
    session.place = place;
    const hash = this.hash(place);
    if (hash !== location.hash) {
      if (how === 'push') history.pushState(null, '', hash);
      else history.replaceState(null, '', hash);
    }
    this.frame(place);
    this.of_view?.remove(); // what the view before could not show
    this.of_view = null;
    try {
      if (place.view === 'lesson') await this.lessons.show(place, turn);
      else if (session.modules.length) {
        await Promise.all([
          this.timeline.show(place),
          this.scrub.show(place),
          place.view === 'overview' ? undefined : this.panel.show(place, turn),
          this.views.get(place.view)?.show(place, turn),
        ]);
      } else await this.views.get('bench')?.show(place, turn);
      if (stepped && session.fresh(turn)) {
        performance.measure('hlo:stage', 'hlo:stage:from');
        if (place.view === 'graph' && session.can_do && old.at.module === place.at.module) this.look_ahead(place, place.at.state - old.at.state, turn);
      }
    } catch (error) {
      if (session.fresh(turn)) {
        this.failed(error);
        this.of_view = this.notices.lastElementChild;
      }
    }
  }

  /** Who steps goes on stepping: the next stage is laid out while one looks at this one. */
  private look_ahead(place: Place, by: number, turn: number): void {
    const next = { module: place.at.module, state: place.at.state + by };
    if (Math.abs(by) !== 1 || next.state < 0 || next.state >= (this.session.info()?.states ?? 0) || place.all) return;
    setTimeout(() => {
      if (this.session.fresh(turn)) {
        this.engine.drawing({ at: next, open: place.open, against: this.session.base({ ...place, at: next }) }).catch(() => undefined); // asked again when wanted, and told then
      }
    }, 30);
  }

  /** The same op in another stage: itself, or the first of its heirs; let go where it is not known. */
  private async carry_op(old: Place, place: Place): Promise<void> {
    if (old.at.module !== place.at.module) {
      place.op = null;
      place.name = '';
      return;
    }
    const ids = await this.engine.follow({ at: old.at, id: old.op as number, to: place.at.state }).then((found) => found.ids, () => null);
    if (ids?.length && ids[0] !== old.op) {
      place.op = ids[0];
      place.name = await this.engine.op({ at: place.at, id: ids[0] }).then((op) => op.name, () => '');
    }
  }

  private hash(place = this.session.place): string {
    return to_hash(place, (at) => this.session.number_of(at));
  }

  private frame(place: Place): void {
    const { modules } = this.session, info = this.session.info(place.at.module);
    for (const [name, view] of this.views) view.element.hidden = name !== this.shown_view(place);
    for (const tab of this.tabs.querySelectorAll<HTMLElement>('[role=tab]')) {
      const here = tab.dataset.view === place.view;
      tab.setAttribute('aria-selected', String(here));
      tab.tabIndex = here ? 0 : -1;
      if (tab.dataset.view === 'search') tab.hidden = !here && !place.query;
      if (tab.dataset.view === 'links') tab.hidden = !here && modules.length < 2;
    }
    document.body.classList.toggle('bare', !modules.length || place.view === 'lesson');
    document.body.classList.toggle('at-lesson', place.view === 'lesson');
    document.body.classList.toggle('at-bench', place.view === 'bench');
    document.body.classList.toggle('at-overview', place.view === 'overview');
    if (place.view === 'lesson') {
      fill(this.head, h('b', { class: 'brand' }, 'hlo-replay'), this.to_lessons());
      document.title = `${this.lessons.title(place)} · hlo-replay`;
      return;
    }
    const picker = modules.length > 1
      ? h(
        'select',
        {
          class: 'module',
          'aria-label': 'Module',
          onchange: () =>
            void this.go({ at: { module: Number((picker as HTMLSelectElement).value), state: -1 }, op: null, name: '', open: null, all: false, against: null }),
        },
        ...modules.slice(0, 2000).map((m) =>
          h(
            'option',
            { value: String(m.module), selected: m.module === place.at.module },
            `${m.source === 'bench' ? '✎ ' : ''}${m.name.slice(0, 80)}${m.states ? ` (${m.states})` : ''}`,
          )
        ),
      )
      : null;
    fill(
      this.head,
      h('b', { class: 'brand' }, 'hlo-replay'),
      this.course ? this.to_lessons() : null,
      picker ?? (info ? foreign(info.name, 60, 'strong') : null),
      info?.problems.length ? h('span', { class: 'warn', title: info.problems.join('\n').slice(0, 3000) }, `⚠ ${info.problems.length}`) : null,
    );
    const base = place.against ?? null;
    fill(this.where);
    bdi_path(this.where, [
      {
        text: info?.name ?? '',
        run: () => {
          void this.go({ view: 'overview' });
        },
      },
      {
        text: this.session.stage_words(place.at) +
          (base ? ` against ${base.module === place.at.module ? '' : base.module + ':'}${this.session.stage_words(base)}` : ''),
        run: () => {
          void this.go({ view: 'graph' });
        },
      },
      ...(place.op !== null
        ? [{
          text: place.name || 'op',
          run: () => {
            void this.select(place.op, place.name, { view: 'graph' });
          },
        }]
        : []),
    ]);
    if (base) {
      this.where.append(
        ' ',
        link('(against the stage before)', () => {
          void this.go({ against: null });
        }),
      );
    }
    document.title = (info ? info.name.slice(0, 80) + ' · ' : '') + 'hlo-replay';
  }

  async select(id: number | null, name: string, change: Partial<Place> = {}): Promise<void> {
    this.say(id === null ? 'nothing selected' : `selected ${name.slice(0, 200)}`);
    await this.go({ ...change, op: id, name }, id === null ? 'replace' : 'push');
  }

  async search(query: string): Promise<void> {
    await this.go({ view: 'search', query }, this.session.place.view === 'search' ? 'replace' : 'push');
  }

  notice(notice: Notice): void {
    const element: HTMLElement = h(
      'div',
      { class: 'notice ' + notice.kind, role: notice.kind === 'error' ? 'alert' : null },
      foreign(notice.message, 1000),
      notice.hint ? h('span', { class: 'faint' }, ' ', foreign(notice.hint, 600)) : null,
      notice.action
        ? button(notice.action.label, () => {
          notice.action?.run();
          element.remove();
        })
        : null,
      button('×', () => element.remove(), { 'aria-label': 'Dismiss' }),
    );
    for (const old of Array.from(this.notices.children)) if (old.textContent === element.textContent) old.remove();
    while (this.notices.children.length > 4) this.notices.firstElementChild?.remove();
    this.notices.append(element);
  }

  failed(error: unknown): void {
    const said = error as { message?: string; hint?: string };
    const message = String(said?.message ?? error);
    if (this.ended && /^the engine ended|none is open$/.test(message)) return; // said once, with the way back
    this.notice({ kind: 'error', message, hint: said?.hint });
  }

  /** What the page asks is answered by other code than made the page. */
  engine_older(): void {
    this.head.after(
      h('span', {
        class: 'faint older',
        title: 'Where its answers differ from those of hlo-replay, hlo-replay is right: `hlo-replay view --serve` shows them here.',
      }, 'engine made from older sources than this tool'),
    );
  }

  /** Out of memory, or a fault of the engine: what is drawn stays; what the page brought can be opened again. */
  engine_ended(why: string): void {
    this.ended = true;
    this.notice({
      kind: 'error',
      message: `The engine ended: ${why}`,
      hint: '`hlo-replay view --serve` has no limit of 4 GB.',
      action: this.restart
        ? {
          label: 'Start it again',
          run: () => {
            void this.again();
          },
        }
        : undefined,
    });
  }

  private async again(): Promise<void> {
    if (!this.restart) return;
    try {
      this.session.engine = keeping(await this.restart());
      this.ended = false;
      this.lessons.forget();
      await this.begin();
    } catch (error) {
      this.failed(error);
    }
  }

  say(text: string): void {
    this.live.textContent = text;
  }

  find_fault(): Promise<void> {
    return this.fault.find();
  }

  async reload(): Promise<void> {
    await this.session.load();
  }

  async open(files: { name: string; bytes: Uint8Array }[], shows: boolean): Promise<void> {
    performance.mark('hlo:open:from');
    const { modules } = await this.engine.open(files);
    this.session.engine.forget(); // its numbers mean other modules now
    await this.session.load();
    const first = modules[0];
    if (shows && first) {
      await this.go({
        at: { module: first.module, state: -1 },
        view: modules.length > 1 || first.states > 1 ? 'overview' : 'graph',
        op: null,
        name: '',
        open: null,
        all: false,
        against: null,
      });
    }
    if (shows) performance.measure('hlo:open', 'hlo:open:from');
  }

  choose(): void {
    this.bench.choose();
  }
  show_help(): void {
    if (!this.help.open) this.help.showModal();
  }

  private async copy_link(): Promise<void> {
    const address = location.href.split('#')[0] + this.hash();
    try {
      await navigator.clipboard.writeText(address);
      this.notice({ kind: 'note', message: 'The address is copied.' });
    } catch {
      this.notice({ kind: 'note', message: address });
    }
  }

  switch_theme(): void {
    document.documentElement.dataset.chosen = 'yes';
    this.theme(document.documentElement.dataset.theme !== 'dark');
  }

  theme(dark: boolean): void {
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
    for (const view of this.views.values()) view.theme?.();
    this.scrub.paint();
  }

  private to_lessons(): HTMLElement {
    return link('Lessons', () => {
      void this.go({ view: 'lesson', lesson: '', step: 1, query: '' });
    });
  }

  private shown_view(place: Place): ViewName {
    return this.session.modules.length || place.view === 'lesson' ? place.view : 'bench';
  }

  view(): View | undefined {
    return this.views.get(this.shown_view(this.session.place));
  }

  async to_module(by: number): Promise<void> {
    const { modules, place } = this.session, at = modules.findIndex((m) => m.module === place.at.module), next = modules[at + by];
    const to: StateRef | null = next ? { module: next.module, state: -1 } : null;
    if (to) await this.go({ at: to, op: null, name: '', open: null, all: false, against: null });
  }
}
