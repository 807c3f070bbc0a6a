// "Find the fault": which stage made the module compute something else, shown as a card above the view and lit up in the
// graph, down to the line of the program that it came from.
import { Engine, Id, StateRef } from './protocol';
import { button, fill, foreign, h } from './dom';
import { Host, stage_name } from './host';
import { coloured } from './views/text';

type Found = Awaited<ReturnType<Engine['bisect']>>;
const most = 6; // instructions that are told of either side
const around = 1; // lines of the program in front of the guilty one and behind

/** The line of `model.py:23`; 0 where none is told. */
function line_of(source: string): number {
  return Number(source.match(/:(\d{1,7})(?!\S)/)?.[1] ?? 0);
}

export class FaultCard {
  readonly element = h('section', { class: 'fault', hidden: true, 'aria-label': 'The fault', 'aria-live': 'polite' });
  constructor(private host: Host) {}

  async find(): Promise<void> {
    const module = this.host.session.place.at.module;
    this.element.hidden = false;
    this.element.setAttribute('aria-busy', 'true');
    fill(this.element, h('p', { class: 'faint' }, 'Runs the stages on the same inputs and compares their values …'));
    try {
      await this.show(module, await this.host.engine.bisect({ module }));
    } catch (error) {
      const { message, hint } = error as { message?: string; hint?: string };
      this.card(
        'No answer',
        'warn',
        h('p', null, foreign(String(message ?? error), 1000), hint ? h('span', { class: 'faint' }, ' ', foreign(hint, 400)) : null),
      );
    } finally {
      this.element.removeAttribute('aria-busy');
    }
  }

  private card(title: string, name: string, ...content: (HTMLElement | null)[]): void {
    fill(
      this.element,
      h(
        'div',
        { class: 'fault-head' },
        h('h2', { class: name }, title),
        button('×', () => {
          this.element.hidden = true;
        }, { 'aria-label': 'Dismiss' }),
      ),
      ...content,
    );
  }

  private async show(module: number, found: Found): Promise<void> {
    if (!found.found || found.state === null) {
      this.card('No fault', 'good', h('p', null, foreign(found.text, 1000)));
      return;
    }
    const row = found.row === null ? null : (await this.host.session.rows(module))[found.row];
    const first = found.first, at = first?.at ?? { module, state: found.state }, before = { module: at.module, state: at.state - 1 };
    const [then, now, lines] = await Promise.all([
      this.texts(before, first?.before ?? []),
      this.texts(at, first?.after ?? []),
      this.program(at.module, first?.source || found.source, first?.file ?? ''),
    ]);
    this.card(
      `${row?.pass || row?.name || 'A step'} makes it compute something else`,
      'warn',
      h(
        'p',
        null,
        foreign(stage_name(this.host, { module, state: found.state }), 80),
        ' gives other results than the stage before',
        found.rule ? h('span', null, ': rule ', foreign(found.rule, 80, 'rule'), `, rewrite ${found.rewrite}`) : '',
        first ? h('span', null, '; first in ', foreign(first.name, 60, 'strong'), ', ', foreign(first.text, 300)) : '. ',
        first ? '' : foreign(found.text, 600),
      ),
      lines,
      first ? h('div', { class: 'fault-columns' }, this.code('was', 'gone', then), this.code('became', 'came', now)) : null,
      h(
        'div',
        { class: 'buttons' },
        button('Show it in the graph', () => {
          void this.light(at, found);
        }),
        button('All that the pass changed', () => {
          void this.host.go({ at: { module, state: found.state! }, view: 'diff', against: null });
        }),
      ),
    );
    await this.light(at, found);
  }

  private async texts(at: StateRef, ids: Id[]): Promise<string[]> {
    const ops = await Promise.all(ids.slice(0, most).map((id) => this.host.engine.op({ at, id }).then((op) => op.text, () => '')));
    return [...ops.filter((text) => text), ...(ids.length > most ? [`… and ${ids.length - most} more`] : [])];
  }

  private code(title: string, name: string, texts: string[]): HTMLElement {
    return h(
      'div',
      null,
      h('h3', null, title),
      ...texts.map((text) => h('pre', { class: 'code wrap ' + name }, ...coloured(text.replace(/, metadata=\{.*$/, ''), null))),
    );
  }

  /** The line of the program; with its neighbours where the dump holds the file (`MODULE.model.py` for `model.py`). */
  private async program(module: number, source: string, name: string): Promise<HTMLElement | null> {
    if (!source) return null;
    const line = line_of(source);
    const title = h('h3', null, 'in the program ', foreign(source, 120));
    const text = name ? await this.host.engine.file({ module, name }).then((file) => file.text, () => '') : '';
    const lines = text.split('\n');
    if (!line || !text || line > lines.length) return h('div', null, title);
    const from = Math.max(1, line - around), shown = lines.slice(from - 1, line + around);
    return h(
      'div',
      null,
      title,
      h(
        'pre',
        { class: 'code wrap' },
        ...shown.map((words, k) =>
          h('div', { class: from + k === line ? 'guilty' : null }, h('span', { class: 'number' }, String(from + k)), ' ', foreign(words, 300))
        ),
      ),
    );
  }

  /** The guilty instructions framed in the graph, the first of them selected. */
  private async light(at: StateRef, found: Found): Promise<void> {
    const first = found.first;
    await this.host.reload(); // rewrites are a module of their own
    this.host.session.marked = first ? { at, ids: first.after } : null;
    await this.host.go({ at, view: 'graph', op: null, name: '', open: null, all: false, against: null });
    const id = first?.id ?? found.id;
    if (id !== null) await this.host.select(id, first?.name ?? ''); // a stage that is shown already opens the groups around it
  }
}
