// The desk beside a lesson's text: modules as graph and text, by the page's own views, and an editor where the reader
// is to change one. It is a host of its own, with the page's engine: what is selected here is selected nowhere else.
import { Editor } from 'codemirror/lib/codemirror.js';
import { Engine, Id, StateRef } from '../protocol';
import { button, fill, h } from '../dom';
import { Host } from '../host';
import { Notice, Place, Session } from '../session';
import { hlo_editor } from '../views/editor';
import { GraphView } from '../views/graph';
import { TextView } from '../views/text';

export interface Sheet {
  label: string;
  at: StateRef;
  against: StateRef | null;
}

export class Desk implements Host {
  readonly session: Session;
  readonly graph: GraphView;
  readonly element: HTMLElement;
  private text: TextView;
  private tabs = h('div', { class: 'desk-tabs', role: 'tablist', 'aria-label': 'Modules of this step' });
  private states = h('div', { class: 'desk-states' });
  private editing = h('div', { class: 'desk-editor' });
  private place_of_editor = h('div', { class: 'editor' });
  private editor: Editor | null = null;
  private sheets: Sheet[] = [];
  private at = 0;
  private edits = false;
  private run: () => void = () => undefined;

  constructor(private outer: Host, private whole: (sheet: Sheet) => void) {
    this.session = new Session(outer.session.engine, outer.session.can_do);
    this.graph = new GraphView(this);
    this.text = new TextView(this);
    this.states.append(this.graph.element, this.text.element);
    this.editing.append(
      h(
        'div',
        { class: 'toolbar' },
        button('Run (Ctrl+Enter)', () => this.run(), { class: 'primary run' }),
        button('As it was', () => this.set_text(this.first), { title: 'The module of this step, as it was before' }),
      ),
      this.place_of_editor,
    );
    this.element = h('div', { class: 'desk' }, this.tabs, this.states, this.editing);
  }
  private first = '';

  get engine(): Engine {
    return this.session.engine;
  }

  /** The page's engine may be a new one. */
  fresh_engine(): void {
    this.session.engine = this.outer.session.engine;
  }

  /** Sheets to look at; with `edit` an editor stands before them. */
  async set(sheets: Sheet[], shown: number, edit: { text: string; now: string; run: () => void } | null = null): Promise<void> {
    this.sheets = sheets;
    this.edits = edit !== null;
    if (edit) {
      this.first = edit.text;
      this.run = edit.run;
      if (!this.editor) {
        this.editor = hlo_editor(this.place_of_editor, edit.now, 'HLO text, to be changed; Ctrl+Enter runs the passes, Escape leaves', () => this.run());
      } else if (this.editor.getValue() !== edit.now) this.set_text(edit.now);
    }
    await this.session.load();
    await this.pick(shown);
  }

  /** -1: the editor. */
  async pick(index: number): Promise<void> {
    this.at = index < 0 && this.edits ? -1 : Math.max(0, Math.min(index, this.sheets.length - 1));
    const names = this.sheets.map((sheet) => sheet.label), all = this.edits ? ['Change it', ...names] : names, here = this.edits ? this.at + 1 : this.at;
    const sheet = this.sheets[this.at];
    fill(
      this.tabs,
      ...all.map((name, i) =>
        h('button', {
          type: 'button',
          role: 'tab',
          'aria-selected': String(i === here),
          onclick: () => {
            this.pick(this.edits ? i - 1 : i).catch((error) => this.failed(error));
          },
        }, name)
      ),
      h('span', { class: 'spring' }),
      sheet
        ? button('In the whole page', () => this.whole(sheet), { class: 'whole', title: 'Opens this module with all views; the back button leads here' })
        : null,
    );
    this.editing.hidden = this.at !== -1;
    this.states.hidden = this.at === -1 || !sheet;
    if (this.at === -1) {
      this.editor?.refresh();
      return;
    }
    if (sheet) await this.go({ at: sheet.at, against: sheet.against, op: null, name: '', open: null, all: true });
  }

  set_text(text: string): void {
    this.editor?.setValue(text);
  }
  get_text(): string {
    return this.editor?.getValue() ?? '';
  }
  labels(): string {
    return this.sheets.map((sheet) => sheet.label).join(' ');
  }
  shows(): StateRef | null {
    return this.sheets[this.at]?.at ?? null;
  }

  async go(change: Partial<Place>): Promise<void> {
    const place: Place = { ...this.session.place, ...change, view: 'graph' }, turn = this.session.begin();
    this.session.place = place;
    await Promise.all([this.graph.show(place, turn), this.text.show(place, turn)]);
  }

  async select(id: Id | null, name: string, change: Partial<Place> = {}): Promise<void> {
    this.say(id === null ? 'nothing selected' : `selected ${name.slice(0, 200)}`);
    await this.go({ ...change, op: id, name }).catch((error) => this.failed(error));
  }

  async select_name(name: string): Promise<void> {
    const id = await this.session.by_name(this.session.place.at, name);
    if (id !== null) await this.select(id, name);
  }

  notice(notice: Notice): void {
    this.outer.notice(notice);
  }
  failed(error: unknown): void {
    this.outer.failed(error);
  }
  say(text: string): void {
    this.outer.say(text);
  }
  find_fault(): Promise<void> {
    return this.outer.find_fault();
  }
  async reload(): Promise<void> {
    await this.session.load();
  }
  theme(): void {
    this.graph.theme();
  }

  key(event: KeyboardEvent): boolean {
    return this.at !== -1 && !!this.sheets.length && !event.key.startsWith('ArrowL') && !event.key.startsWith('ArrowR') && event.key !== 'Enter' &&
      this.graph.key(event);
  }
}
