// The lessons: a list of them, and one step at a time beside the desk. Which lesson and step is in the address.
import { add, button, bytes, fill, foreign, h, link, plural, seconds } from '../dom';
import { Host, View } from '../host';
import { Place } from '../session';
import { show_values } from '../views/results';
import { Made, Verdict, Workshop } from './check';
import { Desk, Sheet } from './desk';
import { Lesson, Question, read_lesson, Step } from './lesson';
import { Decision, predict_element, read_decisions, valid_said } from './predict';

/** What a page with lessons carries: files by name, and the lesson that it opens with ('' the list of all). */
export interface Course {
  texts: Map<string, string>;
  first: string;
}

/** Text with `code` and **words that are explained here**; nothing else of it is markup. */
export function inline(text: string): (HTMLElement | string)[] {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).filter(Boolean).map((part) =>
    part.startsWith('`') ? h('code', null, part.slice(1, -1)) : part.startsWith('**') ? h('b', { class: 'term' }, part.slice(2, -2)) : part
  );
}

/** A paragraph, a list (lines that begin with `- `) or code (four blanks in front of each line). */
function paragraph(text: string): HTMLElement {
  if (text.startsWith('    ')) return h('pre', { class: 'code' }, text.replace(/^ {4}/gm, ''));
  if (!text.startsWith('- ')) return h('p', null, ...inline(text));
  return h('ul', null, ...text.split(/^- /m).filter(Boolean).map((item) => h('li', null, ...inline(item.trim()))));
}

interface Answer {
  given: string;
  verdict: Verdict;
}

export class LessonView implements View {
  readonly name = 'lesson' as const;
  readonly element: HTMLElement;
  private lessons: Lesson[] = [];
  private fault = '';
  private decisions: Decision[] = [];
  private words = h('div', { class: 'lesson-text', tabIndex: -1 });
  private made_desk: Desk | null = null; // when a lesson is opened: pages without lessons do without
  private workshops = new Map<string, Workshop>();
  private answers = new Map<string, Answer>();
  private seen = '';
  private in_sight = 0; // the decision shown

  constructor(private host: Host, private course: Course | null) {
    this.element = h('section', { class: 'view lesson', 'aria-label': 'Lesson' }, this.words);
    try {
      for (const [file, text] of course?.texts ?? []) if (file.endsWith('.md')) this.lessons.push(read_lesson(file.replace(/^\d+_|\.md$/g, ''), text));
      this.decisions = read_decisions(course?.texts.get('decisions.json') ?? '{"decisions": []}');
    } catch (error) {
      this.fault = String((error as Error).message ?? error);
    }
  }

  private get desk(): Desk {
    if (!this.made_desk) {
      this.made_desk = new Desk(this.host, (sheet) => {
        this.host.reload().then(() => this.host.go({ at: sheet.at, against: sheet.against, view: 'graph', op: null, name: '', open: null, all: false })).catch(
          (error) => this.host.failed(error),
        );
      });
      this.element.append(this.made_desk.element);
    }
    return this.made_desk;
  }

  theme(): void {
    this.made_desk?.theme();
  }

  /** The engine is a new one, which has none of our modules. */
  forget(): void {
    this.workshops.clear();
    this.made_desk?.fresh_engine();
    this.seen = '';
  }

  title(place: Place): string {
    return this.lesson(place)?.title ?? 'Lessons';
  }

  private lesson(place: Place): Lesson | undefined {
    return this.lessons.find((one) => one.name === place.lesson);
  }
  private step_of(place: Place): number {
    return Math.max(1, Math.min(place.step, this.lesson(place)?.steps.length ?? 1));
  }
  private key_of(place: Place): string {
    return `${place.lesson}/${this.step_of(place)}`;
  }

  private to(lesson: string, step: number): Promise<void> {
    return this.host.go({ view: 'lesson', lesson, step, query: '' });
  }

  async show(place: Place, turn: number): Promise<void> {
    const lesson = this.lesson(place), key = `${this.key_of(place)}?${place.query}`;
    if (key === this.seen) return;
    this.seen = key;
    if (this.made_desk) this.made_desk.element.hidden = !lesson;
    if (!lesson) {
      this.contents(place.lesson);
      return;
    }
    const step = lesson.steps[this.step_of(place) - 1], said = valid_said(place.query, this.decisions.length);
    if (step.predict && !(this.in_sight === said.length - 1 && said.length)) this.in_sight = said.length;
    await this.draw(lesson, step, place, turn);
  }

  private contents(asked: string): void {
    const none = this.course ? null : h('p', null, 'This page carries no lessons. `hlo-replay lesson -o lessons.html` makes one that does.');
    fill(
      this.words,
      h('h1', { tabIndex: -1 }, 'Lessons'),
      none,
      this.fault ? h('p', { class: 'warn', role: 'alert' }, this.fault) : null,
      asked && this.course ? h('p', { class: 'warn' }, 'There is no lesson ', foreign(asked, 60), '.') : null,
      h(
        'ol',
        { class: 'course' },
        ...this.lessons.map((lesson) =>
          h(
            'li',
            null,
            h(
              'h2',
              null,
              link(lesson.title, () => {
                void this.to(lesson.name, 1);
              }),
            ),
            h('p', null, ...inline(lesson.about)),
            h('p', { class: 'faint' }, plural(lesson.steps.length, 'step')),
          )
        ),
      ),
      this.lessons.length
        ? h(
          'p',
          { class: 'faint' },
          'Everything runs in this page: nothing is asked of a network. ',
          h('kbd', null, '→'),
          ' continues, ',
          h('kbd', null, '←'),
          ' goes back, ',
          h('kbd', null, '?'),
          ' lists the keys.',
        )
        : null,
    );
  }

  private workshop(lesson: Lesson): Workshop {
    let found = this.workshops.get(lesson.name);
    if (!found) this.workshops.set(lesson.name, found = new Workshop(this.host.engine, lesson));
    return found;
  }

  private async draw(lesson: Lesson, step: Step, place: Place, turn: number): Promise<void> {
    const number = this.step_of(place),
      shop = this.workshop(lesson),
      more = h('div', { class: 'lesson-more' }),
      values = h('div', { class: 'lesson-more' }),
      asks = h('div');
    const next = this.lessons[this.lessons.indexOf(lesson) + 1];
    const steps = h(
      'nav',
      { class: 'steps', 'aria-label': 'Steps' },
      ...lesson.steps.map((one, i) =>
        button('', () => {
          void this.to(lesson.name, i + 1);
        }, {
          class: 'step' + (i + 1 === number ? ' here' : i + 1 < number ? ' past' : ''),
          'aria-label': `Step ${i + 1}: ${one.title}`,
          'aria-current': i + 1 === number ? 'step' : null,
          title: `${i + 1}. ${one.title}`,
        })
      ),
    );
    const heading = h('h1', { tabIndex: -1 }, step.title);
    fill(
      this.words,
      h('div', { class: 'faint lesson-name' }, `${lesson.title} · ${number} of ${lesson.steps.length}`),
      steps,
      heading,
      ...step.body.map(paragraph),
      values,
      asks,
      more,
      h(
        'div',
        { class: 'lesson-nav' },
        button('← Back', () => this.turn(-1), { disabled: number === 1 }),
        number < lesson.steps.length ? button('Next →', () => this.turn(1), { class: 'primary next' }) : next
          ? button(`Next lesson: ${next.title} →`, () => {
            void this.to(next.name, 1);
          }, { class: 'primary next' })
          : button('All lessons', () => {
            void this.to('', 1);
          }, { class: 'primary next' }),
      ),
    );
    this.words.scrollTop = 0;
    if (!(document.activeElement as HTMLElement | null)?.closest('input, .CodeMirror')) heading.focus({ preventScroll: true });
    if (step.predict) {
      await this.draw_decision(lesson, place, asks);
      return;
    }
    if (step.question) this.draw_question(step.question, shop, place, asks);
    const sheets: Sheet[] = [];
    for (const name of step.show) {
      const made = await shop.module(name);
      sheets.push({ label: name, at: made.at, against: made.from });
    }
    if (!this.host.session.fresh(turn)) return;
    const question = step.question, known = this.answers.get(this.key_of(place));
    if (question?.kind === 'edit') await this.desk_to_edit(question, lesson, shop, place, asks, known);
    // What would answer the question, the tables and what the passes made of the module, comes to the fore with the answer.
    this.reveal = async () => {
      this.desk.element.hidden = !sheets.length;
      const told = !question || this.answers.has(this.key_of(place));
      if (sheets.length) await this.desk.set(sheets, told ? sheets.length - 1 : 0);
      if (told) await this.tables(step, shop, more);
    };
    if (question?.kind !== 'edit') await this.reveal();
    if (!step.values) return;
    const { at } = await shop.module(step.values);
    show_values(this.desk, values, at, await shop.engine.evaluate({ at }));
  }
  private reveal: () => Promise<void> = () => Promise.resolve();

  private turn(by: number): void {
    const place = this.host.session.place, lesson = this.lesson(place), to = this.step_of(place) + by;
    if (lesson && to >= 1 && to <= lesson.steps.length) void this.to(lesson.name, to);
  }

  private async tables(step: Step, shop: Workshop, place: HTMLElement): Promise<void> {
    const made: HTMLElement[] = [];
    for (const name of step.table) made.push(this.kernel_table(name, await shop.kernels((await shop.module(name)).at)));
    for (const name of step.thunks) made.push(this.thunk_table(name, await shop.thunks((await shop.module(name)).at)));
    fill(place, ...made);
  }

  private thunk_table(name: string, thunks: { kind: string; name: string; depth: number }[]): HTMLElement {
    return h(
      'table',
      { class: 'table kernels' },
      h('caption', null, h('b', null, name), `: ${plural(thunks.length, 'thunk')}`),
      h('thead', null, h('tr', null, ...['', 'kind', 'of'].map((t) => h('th', { scope: 'col' }, t)))),
      h(
        'tbody',
        null,
        ...thunks.map((thunk, i) =>
          h('tr', null, h('td', { class: 'n' }, i + 1), h('td', null, '\u2003'.repeat(thunk.depth) + thunk.kind), h('td', null, foreign(thunk.name, 40)))
        ),
      ),
    );
  }

  private kernel_table(name: string, kernels: { name: string; bytes: number; seconds: number }[]): HTMLElement {
    const row = (first: HTMLElement | string, size: number, time: number) =>
      h('tr', null, h('td', null, first), h('td', { class: 'n' }, bytes(size)), h('td', { class: 'n' }, seconds(time)));
    return h(
      'table',
      { class: 'table kernels' },
      h('caption', null, h('b', null, name), `: ${plural(kernels.length, 'kernel')}`),
      h(
        'thead',
        null,
        h('tr', null, ...['kernel', 'read and written', 'least time, launch aside'].map((t, i) => h('th', { scope: 'col', class: i ? 'n' : null }, t))),
      ),
      h(
        'tbody',
        null,
        ...kernels.map((kernel) => row(foreign(kernel.name, 40), kernel.bytes, kernel.seconds)),
        row(h('b', null, 'together'), kernels.reduce((sum, one) => sum + one.bytes, 0), kernels.reduce((sum, one) => sum + one.seconds, 0)),
      ),
    );
  }

  // --- questions ---

  private draw_question(question: Question, shop: Workshop, place: Place, asks: HTMLElement): void {
    const key = this.key_of(place), answer = this.answers.get(key);
    const give = (given: string) => {
      this.judge(question, shop, place, asks, given).catch((error) => this.wrong_text(asks, error));
    };
    const box = h('div', { class: 'question' }, h('h3', null, ...inline(question.text)));
    if (question.kind === 'choose') {
      box.append(
        h(
          'div',
          { class: 'options' },
          ...question.options.map((one, i) =>
            h(
              'button',
              {
                type: 'button',
                class: 'option' + (answer?.given === one.value ? ' chosen' : ''),
                data: { value: one.value },
                onclick: () => give(one.value),
              },
              h('kbd', null, i + 1),
              ' ',
              ...inline(one.label),
            )
          ),
        ),
      );
    } else if (question.kind === 'number') {
      const input = h('input', { type: 'text', 'aria-label': 'Your answer', value: answer?.given ?? '', maxLength: 60, spellcheck: false });
      input.addEventListener('keydown', (event) => {
        if (event.key === 'Enter') give(input.value);
      });
      box.append(h('div', { class: 'options' }, input, button('Check', () => give(input.value), { class: 'primary' })));
    } else {box.append(h(
        'p',
        { class: 'faint' },
        question.passes.length ? `Change the text, then run it: the engine takes it and runs ${question.passes.join(', ')}.` : 'Change the text, then run it.',
      ));}
    const said = h('div', { class: 'said', role: 'status', 'aria-live': 'polite' });
    box.append(said);
    fill(asks, box);
    if (answer) this.tell(question, answer.verdict, said);
  }

  private async judge(question: Question, shop: Workshop, place: Place, asks: HTMLElement, given: string): Promise<void> {
    const turn = this.seen, verdict = await shop.judge(question, given);
    this.answers.set(this.key_of(place), { given, verdict });
    if (this.seen !== turn) return;
    this.draw_question(question, shop, place, asks);
    if (!verdict.right) asks.querySelector('input')?.focus(); // for another try
    this.host.say(verdict.right ? 'right' : 'not right');
    const lesson = this.lesson(place);
    if (question.kind !== 'edit') await this.reveal();
    else if (lesson) await this.desk_to_edit(question, lesson, shop, place, asks, this.answers.get(this.key_of(place)));
  }

  private tell(question: Question, verdict: Verdict, said: HTMLElement): void {
    said.className = 'said verdict ' + (verdict.right ? 'is-right' : 'is-wrong');
    fill(
      said,
      h('p', null, h('b', null, verdict.right ? '✓ Right. ' : question.kind === 'edit' ? '✗ Not yet. ' : '✗ No. '), ...inline(verdict.tells)),
      verdict.found ? h('p', { class: 'found' }, foreign(verdict.found, 600)) : null,
      verdict.instead ? paragraph(verdict.instead) : null,
      ...(verdict.right || question.kind !== 'edit' && verdict.found ? question.after.split('\n\n').filter(Boolean).map(paragraph) : []),
    );
    if (question.kind === 'edit' && !verdict.right) {
      said.append(button('Show a solution', () => {
        this.desk.set_text(question.solution);
        void this.desk.pick(-1);
      }));
    }
  }

  /** A text that cannot be read, or a pass that refuses it: said in the engine's words. */
  private wrong_text(asks: HTMLElement, error: unknown): void {
    const { message, hint, line } = error as { message?: string; hint?: string; line?: number }, said = asks.querySelector<HTMLElement>('.said');
    if (!said) {
      this.host.failed(error);
      return;
    }
    said.className = 'said verdict is-wrong';
    fill(
      said,
      h('p', { role: 'alert' }, h('b', null, line ? `Line ${line}: ` : ''), foreign(String(message ?? error), 600)),
      hint ? h('p', { class: 'faint' }, foreign(hint, 400)) : null,
    );
  }

  private async desk_to_edit(
    question: Question & { kind: 'edit' },
    lesson: Lesson,
    shop: Workshop,
    place: Place,
    asks: HTMLElement,
    answer: Answer | undefined,
  ): Promise<void> {
    const first: string = lesson.modules.get(question.module) ?? await shop.module(question.module).then((one) => shop.text(one.at));
    const sheets: Sheet[] = [], made: Made | undefined = answer?.verdict.made;
    if (made) sheets.push({ label: made.from ? 'yours, after the passes' : 'yours', at: made.at, against: made.from });
    if (made?.from) sheets.unshift({ label: 'yours', at: made.from, against: null });
    this.desk.element.hidden = false;
    await this.desk.set(sheets, made ? sheets.length - 1 : -1, {
      text: first,
      now: answer?.given ?? first,
      run: () => {
        this.judge(question, shop, place, asks, this.desk.get_text()).catch((error) => this.wrong_text(asks, error));
      },
    });
  }

  // --- predict the compiler ---

  private async draw_decision(lesson: Lesson, place: Place, asks: HTMLElement): Promise<void> {
    const said = valid_said(place.query, this.decisions.length), decision = this.decisions[this.in_sight];
    const say = (letters: string) => {
      if (!letters) this.in_sight = 0;
      void this.host.go({ view: 'lesson', lesson: lesson.name, step: place.step, query: letters }, 'replace');
    };
    const go = (shown: number) => {
      this.in_sight = shown;
      this.draw_decision(lesson, place, asks).catch((error) => this.host.failed(error));
    };
    fill(asks, predict_element(this.decisions, said, this.in_sight, say, go));
    asks.querySelector('.verdict')?.scrollIntoView({ block: 'nearest' });
    this.desk.element.hidden = !decision;
    if (!decision) return;
    const shop = this.workshop(lesson), in_sight = this.in_sight, label = `decision ${in_sight + 1}`;
    if (this.shown_decision !== decision.text || this.desk.labels() !== label) {
      const { at } = await shop.take(decision.text, `decision_${in_sight + 1}`);
      if (this.in_sight !== in_sight) return;
      this.shown_decision = decision.text;
      await this.desk.set([{ label, at, against: null }], 0);
      await this.desk.select_name(decision.producer);
    }
    const at = this.desk.shows();
    if (at && in_sight < said.length && this.in_sight === in_sight) add(asks, this.kernel_table('apart', await shop.kernels(at)));
  }
  private shown_decision = '';

  key(event: KeyboardEvent): boolean {
    const place = this.host.session.place, lesson = this.lesson(place);
    if (!lesson) {
      const chosen = /^[1-9]$/.test(event.key) ? this.lessons[Number(event.key) - 1] : event.key === 'ArrowRight' ? this.lessons[0] : undefined;
      if (chosen) void this.to(chosen.name, 1);
      return !!chosen;
    }
    if (event.key === 'ArrowRight' || event.key === 'ArrowLeft') {
      this.turn(event.key === 'ArrowRight' ? 1 : -1);
      return true;
    }
    if (event.key === 'Home' || event.key === 'End') {
      void this.to(lesson.name, event.key === 'Home' ? 1 : lesson.steps.length);
      return true;
    }
    if (event.key === 'Escape') {
      void this.desk.select(null, '');
      return true;
    }
    const buttons = /^[1-9]$/.test(event.key)
      ? this.words.querySelectorAll<HTMLButtonElement>('.question .option[data-value]')[Number(event.key) - 1]
      : /^[fk]$/.test(event.key)
      ? this.words.querySelector<HTMLButtonElement>(`.predict .option[data-letter=${event.key}]`)
      : event.key === 'Enter'
      ? this.words.querySelector<HTMLButtonElement>('.predict .primary')
      : null;
    if (buttons) {
      buttons.click();
      return true;
    }
    return this.desk.key(event);
  }
}
