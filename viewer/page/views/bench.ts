// The bench: the module's text to change, passes to run on it, values to look at, the fault to find.
import { how_to_get_it } from '../answers';
import { Editor } from 'codemirror/lib/codemirror.js';
import { PassInfo, RunResult, StateRef } from '../protocol';
import { add, button, fill, foreign, h, link, plural, save } from '../dom';
import { View } from '../host';
import { choose_files, Opener } from '../drop';
import { Place, same_state } from '../session';
import { hlo_editor } from './editor';
import { show_bisect, show_values } from './results';

const largest_text = 8_000_000; // characters that the editor takes; larger ones are run without being shown
const example = `HloModule example

ENTRY main {
  x = f32[128,256] parameter(0)
  one = f32[] constant(1)
  ones = f32[128,256] broadcast(one), dimensions={}
  product = f32[128,256] multiply(x, ones)
  zero = f32[] constant(0)
  zeros = f32[128,256] broadcast(zero), dimensions={}
  ROOT sum = f32[128,256] add(product, zeros)
}
`;

export class BenchView implements View {
  readonly name = 'bench' as const;
  readonly element: HTMLElement;
  private editor: Editor | null = null;
  private place = h('div', { class: 'editor' });
  private at: StateRef | null = null;
  private edited = false;
  private origin: StateRef | null = null; // the state whose text is edited
  private results = h('div', { class: 'results', 'aria-live': 'polite' });
  private side = h('div', { class: 'bench-side' });
  private tells = h('span', { class: 'faint' });
  private passes: PassInfo[] = [];
  private chosen: string[] = [];
  private chain = h('ol', { class: 'chain', 'aria-label': 'Passes to run, in order' });
  private pass_box = h('input', { type: 'text', list: 'pass-names', placeholder: 'pass, e.g. algsimp', 'aria-label': 'Pass to add', spellcheck: false });
  private names = h('datalist', { id: 'pass-names' });
  private pipeline = h('select', { 'aria-label': 'Pipeline' });
  private from = h('select', { 'aria-label': 'From which pass of the pipeline on' });
  private off = h('input', { type: 'text', placeholder: 'left out: fusion, cse', 'aria-label': 'Passes that are left out', spellcheck: false });
  private fuel = h('input', { type: 'text', placeholder: 'fuel: algsimp=3', 'aria-label': 'Fuel: rewrites a pass may do', spellcheck: false });
  private options = h('input', { type: 'text', placeholder: 'options: name=value', 'aria-label': 'Options', spellcheck: false });
  private seed = h('input', { type: 'number', value: '0', 'aria-label': 'Seed of the inputs', class: 'stage-number' });
  private inputs = h('input', {
    type: 'text',
    placeholder: 'inputs: {1, 2, 3, 4}, … (else by seed)',
    'aria-label': 'Inputs: a literal a parameter',
    spellcheck: false,
  });
  private fill = h(
    'select',
    { 'aria-label': 'Values of constants that the text leaves out' },
    h('option', { value: '' }, 'left-out constants: refuse'),
    h('option', { value: 'random' }, '… are random'),
    h('option', { value: 'zeros' }, '… are zeros'),
  );
  private pipelines: { name: string; rows: { pipeline: string; pass: string }[] }[] = [];
  private asked = false;

  constructor(private host: Opener) {
    this.pass_box.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') {
        event.preventDefault();
        this.add_pass();
      }
    });
    this.pipeline.addEventListener('change', () => this.fill_from());
    this.element = h(
      'section',
      { class: 'view bench', 'aria-label': 'Bench' },
      h(
        'div',
        { class: 'bench-main' },
        h(
          'div',
          { class: 'toolbar' },
          button('Take the text', () => {
            void this.work(async () => {
              await this.take();
            });
          }, { class: 'primary', title: 'Parse and show it (Ctrl+Enter)' }),
          button('From the stage shown', () => {
            this.at = null;
            this.edited = false;
            void this.work(() => this.load(this.host.session.place));
          }),
          button('Save', () => save('module.hlo', new Blob([this.editor?.getValue() ?? ''], { type: 'text/plain' })), { title: 'Save the text as a file' }),
          button('Open …', () => this.choose()),
          this.tells,
        ),
        this.place,
      ),
      this.side,
    );
    this.make_side();
  }

  private make_side(): void {
    fill(
      this.side,
      h('h3', null, 'Run passes'),
      h('div', { class: 'row' }, this.pass_box, button('Add', () => this.add_pass())),
      this.names,
      this.chain,
      h('div', { class: 'row' }, this.off),
      h('div', { class: 'row' }, this.fuel),
      h('div', { class: 'row' }, this.options),
      h(
        'div',
        { class: 'row' },
        button('Run these', () => {
          void this.work(async () => {
            await this.run_passes(this.chosen);
          });
        }, { class: 'primary' }),
      ),
      h('h3', null, 'Or a pipeline'),
      h('div', { class: 'row' }, this.pipeline),
      h('div', { class: 'row' }, this.from),
      h(
        'div',
        { class: 'row' },
        button('Run from there', () => {
          void this.work(() => this.run_pipeline());
        }),
      ),
      h('h3', null, 'Values'),
      h('div', { class: 'row' }, this.inputs),
      h('div', { class: 'row' }, this.fill),
      h(
        'div',
        { class: 'row' },
        h('span', { class: 'faint' }, 'seed '),
        this.seed,
        button('Evaluate', () => {
          void this.work(() => this.evaluate());
        }),
        button('Same as before?', () => {
          void this.work(() => this.compare());
        }, { title: 'Evaluates the first and the last stage of this module on the same inputs' }),
      ),
      h(
        'div',
        { class: 'row' },
        button('Find the fault', () => {
          void this.work(() => this.bisect());
        }, { title: 'bisect: which rewrite changed what the module computes' }),
      ),
      this.results,
    );
  }

  choose(): void {
    choose_files(this.host);
  }

  async show(place: Place, turn: number): Promise<void> {
    if (!this.host.session.can_do) {
      fill(
        this.element,
        h(
          'div',
          { class: 'page' },
          h('h2', null, 'No engine here'),
          h(
            'p',
            null,
            'This page was made without the engine: it shows what was recorded, and cannot run or change anything. ' + how_to_get_it,
          ),
        ),
      );
      return;
    }
    this.make_editor();
    if (!this.host.session.modules.length && !this.edited) {
      this.tells.textContent = 'Paste HLO here, or drop a dump (folder, .tar.gz, .zip) or modules on the page.';
    }
    if (!this.asked) {
      this.asked = true;
      void this.know_passes().catch((error) => this.host.failed(error));
    }
    if (!this.edited && this.host.session.modules.length && !(this.at && same_state(this.at, place.at))) await this.load(place, turn);
    this.editor?.refresh();
  }

  private make_editor(): void {
    if (this.editor) return;
    const take = () => {
      void this.work(async () => {
        await this.take();
      });
    };
    this.editor = hlo_editor(this.place, this.host.session.modules.length ? '' : example, 'HLO text, to be changed; Ctrl+Enter takes it, Escape leaves', take);
    this.editor.on('change', () => {
      if (!this.loading) {
        this.edited = true;
        this.tells.textContent = 'changed, not taken yet';
      }
    });
  }
  private loading = false;

  set_text(text: string): void {
    this.make_editor();
    this.editor?.setValue(text);
  }

  private async load(place: Place, turn?: number): Promise<void> {
    const at = place.at, lines: string[] = [];
    let size = 0;
    for (let from = 0, total = 1; from < total; from += 2000) {
      const text = await this.host.engine.text({ at, from, lines: 2000, full: true });
      if (this.edited || turn !== undefined && !this.host.session.fresh(turn)) return; // who types while a text comes keeps what was typed
      total = text.total;
      for (const line of text.lines) {
        lines.push(line);
        size += line.length + 1;
      }
      if (size > largest_text) {
        this.tells.textContent = `The text is larger than ${largest_text / 1e6} MB: passes run on the stage itself.`;
        this.at = at;
        return;
      }
    }
    this.loading = true;
    this.editor?.setValue(lines.join('\n'));
    this.loading = false;
    this.at = this.origin = at;
    this.edited = false;
    this.tells.textContent = this.host.session.stage_words(at);
  }

  private async know_passes(): Promise<void> {
    const { passes, pipelines } = await this.host.engine.passes();
    this.passes = passes;
    this.pipelines = pipelines;
    fill(this.names, ...passes.filter((pass) => pass.implemented).map((pass) => h('option', { value: pass.name }, pass.help.slice(0, 200))));
    fill(this.pipeline, ...pipelines.map((one) => h('option', { value: one.name }, one.name)));
    this.fill_from();
  }

  private fill_from(): void {
    const rows = this.pipelines.find((one) => one.name === this.pipeline.value)?.rows ?? [];
    fill(this.from, ...rows.map((row, i) => h('option', { value: String(i) }, i ? `from ${row.pipeline}/${row.pass}` : 'all of it')));
  }

  private add_pass(): void {
    const name = this.pass_box.value.trim();
    if (!name) return;
    const known = this.passes.find((pass) => pass.name === name);
    if (!known?.implemented) this.host.notice({ kind: 'note', message: known ? `${name} is known and not implemented.` : `There is no pass ${name}.` });
    else {
      this.chosen.push(name);
      this.pass_box.value = '';
      this.draw_chain();
    }
  }

  private draw_chain(): void {
    fill(
      this.chain,
      ...this.chosen.map((name, i) =>
        h(
          'li',
          null,
          foreign(name, 60),
          ' ',
          button('×', () => {
            this.chosen.splice(i, 1);
            this.draw_chain();
          }, { 'aria-label': `Leave ${name} out` }),
        )
      ),
    );
  }

  /** What is edited becomes a module of its own. */
  private async take(): Promise<StateRef> {
    if (!this.edited && this.at) return this.at;
    const { at } = await this.host.engine.edit({ text: this.editor?.getValue() ?? '', at: this.origin });
    this.at = this.origin = at;
    this.edited = false;
    await this.host.reload();
    this.tells.textContent = `module ${at.module}, ${this.host.session.stage_words(at)}`;
    await this.host.go({ at, op: null, name: '', open: null, all: false, against: null, view: 'bench' });
    return at;
  }

  private pairs(text: string): Record<string, string> {
    const result: Record<string, string> = {};
    for (const word of text.split(/[\s,]+/).filter(Boolean)) {
      const at = word.indexOf('=');
      if (at < 1) throw new Error(`${word}: name=value is wanted`);
      result[word.slice(0, at)] = word.slice(at + 1);
    }
    return result;
  }

  private extras(): { off?: string[]; options?: Record<string, string>; fuel?: Record<string, number> } {
    const off = this.off.value.split(/[\s,]+/).filter(Boolean), options = this.pairs(this.options.value), fuel: Record<string, number> = {};
    for (const [name, value] of Object.entries(this.pairs(this.fuel.value))) {
      if (!/^\d+$/.test(value)) throw new Error(`fuel of ${name} is no number: ${value}`);
      fuel[name] = Number(value);
    }
    return { ...(off.length ? { off } : {}), ...(Object.keys(options).length ? { options } : {}), ...(Object.keys(fuel).length ? { fuel } : {}) };
  }

  /** Where to run: what is edited, else the stage that is shown. */
  private async start(): Promise<StateRef> {
    if (this.edited) return this.take();
    return this.host.session.modules.length ? this.host.session.place.at : this.take_first();
  }
  private async take_first(): Promise<StateRef> {
    this.make_editor();
    this.edited = true;
    return this.take();
  }

  async run_passes(passes: string[]): Promise<RunResult> {
    if (!passes.length) throw new Error('Add a pass first.');
    return this.ran(await this.start(), { passes, ...this.extras() });
  }

  private async run_pipeline(): Promise<void> {
    await this.ran(await this.start(), { pipeline: this.pipeline.value, from: Number(this.from.value) || 0, ...this.extras() });
  }

  private async ran(at: StateRef, what: { passes?: string[]; pipeline?: string; from?: number }): Promise<RunResult> {
    performance.mark('hlo:run:from');
    const result = await this.host.engine.run({ at, ...what });
    performance.measure('hlo:run', 'hlo:run:from');
    await this.host.reload();
    const changed = result.rows.filter((row) => row.changed);
    fill(
      this.results,
      h(
        'h3',
        null,
        changed.length
          ? `${plural(changed.length, 'pass', 'passes')} of ${result.rows.filter((row) => row.kind === 'pass').length} changed it`
          : 'Nothing changed',
      ),
      ...result.refused.map((text) => h('p', { class: 'warn' }, foreign(text, 400))),
      h(
        'ol',
        { class: 'changes' },
        ...changed.slice(0, 300).map((row) =>
          h(
            'li',
            null,
            row.state !== null
              ? link(foreign(row.pass, 60), () => {
                void this.host.go({ at: { module: result.at.module, state: row.state as number }, view: 'diff', against: null });
              })
              : foreign(row.pass, 60),
            h('span', { class: 'faint' }, ` +${row.added} −${row.removed} ~${row.modified}`),
          )
        ),
      ),
      button('Graph', () => {
        void this.host.go({ view: 'graph' });
      }),
      button('Changes', () => {
        void this.host.go({ view: 'diff', against: at });
      }),
      button('Side by side', () => {
        void this.host.go({ view: 'side', against: at });
      }),
    );
    this.at = null;
    await this.host.go({ at: result.at, op: null, name: '', against: same_state(at, result.at) ? null : at, open: null, all: false });
    return result;
  }

  private given(): { seed: number; inputs?: string; fill?: 'random' | 'zeros' } {
    const fill = this.fill.value as '' | 'random' | 'zeros', inputs = this.inputs.value.trim();
    return { seed: Number(this.seed.value) || 0, ...(inputs ? { inputs } : {}), ...(fill ? { fill } : {}) };
  }

  private async evaluate(): Promise<void> {
    const at = await this.start();
    show_values(this.host, this.results, at, await this.host.engine.evaluate({ at, ...this.given() }));
  }

  private async compare(): Promise<void> {
    const at = await this.start(), a = this.host.session.place.against ?? { module: at.module, state: 0 };
    const { equal, text, first } = await this.host.engine.compare({ a, b: at, ...this.given() });
    fill(
      this.results,
      h('h3', { class: equal ? 'good' : 'warn' }, equal ? 'The same values' : 'Other values'),
      h('p', null, foreign(text, 2000)),
      first
        ? h(
          'p',
          null,
          'first at ',
          first.id !== null
            ? link(foreign(first.name, 60), () => {
              void this.host.select(first.id, first.name, { view: 'graph' });
            })
            : foreign(first.name, 60),
          ': ',
          foreign(first.text, 600),
        )
        : null,
    );
  }

  private async bisect(): Promise<void> {
    const module = this.host.session.place.at.module;
    add(this.results, h('p', { class: 'faint' }, 'Looking …'));
    show_bisect(this.host, this.results, module, await this.host.engine.bisect({ module, ...this.given() }));
  }

  private async work(task: () => Promise<unknown>): Promise<void> {
    this.element.setAttribute('aria-busy', 'true');
    try {
      await task();
    } catch (error) {
      const { message, hint, line, column } = error as { message?: string; hint?: string; line?: number; column?: number }, text = String(message ?? error);
      fill(this.results, h('p', { class: 'warn', role: 'alert' }, foreign(text, 1500), hint ? h('span', { class: 'faint' }, ' ', foreign(hint, 500)) : null));
      if (line && this.editor) {
        const at = line - 1;
        this.editor.setCursor(at, Math.max(0, (column ?? 1) - 1));
        this.editor.addLineClass(at, 'background', 'wrong');
        setTimeout(() => this.editor?.removeLineClass(at, 'background', 'wrong'), 6000);
      }
    } finally {
      this.element.removeAttribute('aria-busy');
    }
  }
}
