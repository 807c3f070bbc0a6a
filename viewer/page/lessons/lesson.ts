// A lesson's text, read: steps, modules, what is shown, questions with their checks. The form is in docs/formats.md. No
// part of this asks the page or the engine, so that tests read the same files in the same way.

export interface Option {
  value: string;
  label: string;
  tells: string;
}
export interface Wrong {
  text: string;
  tells: string;
}

export type Question =
  | { kind: 'choose'; text: string; answer: string; options: Option[]; after: string }
  | { kind: 'number'; text: string; answer: string; wrong: Wrong[]; after: string }
  | {
    kind: 'edit';
    text: string;
    module: string;
    passes: string[];
    expect: { check: string; tells: string }[];
    solution: string;
    wrong: Wrong[];
    after: string;
  };

/** `fuel`: of a pass the most rewrites that it makes; `options`: by `pass.option`. */
export interface Run {
  name: string;
  from: string;
  passes: string[];
  fuel: Record<string, number>;
  options: Record<string, string>;
}

export interface Step {
  title: string;
  body: string[]; // paragraphs; those of lines that begin with `- ` are lists, with four blanks code
  show: string[]; // modules side by side as tabs, the last one first in sight
  table: string[]; // modules whose kernels and bytes are told
  values: string; // module that is evaluated
  thunks: string[]; // modules whose thunks are listed
  question: Question | null;
  predict: boolean;
}

export interface Lesson {
  name: string;
  title: string;
  about: string;
  steps: Step[];
  modules: Map<string, string>;
  runs: Run[];
}

class LessonFault extends Error {}

function fault(name: string, line: number, what: string): never {
  throw new LessonFault(`lesson ${name}, line ${line + 1}: ${what}`);
}

/** Reads a lesson; throws with the line where the text is not of the form. */
export function read_lesson(name: string, text: string): Lesson {
  return new Reader(name, text).read();
}

class Reader {
  private lines: string[];
  private at = 0;
  private step: Step | null = null;
  private paragraph: string[] = [];
  private lesson: Lesson;

  constructor(private name: string, text: string) {
    this.lines = text.split('\n');
    this.lesson = { name, title: '', about: '', steps: [], modules: new Map(), runs: [] };
  }

  read(): Lesson {
    for (; this.at < this.lines.length; this.at++) {
      const line = this.lines[this.at], word = line.match(/^@(\w+)(?:\s+(.*))?$/);
      if (line.startsWith('# ')) this.lesson.title = line.slice(2);
      else if (line.startsWith('## ')) {
        this.end_paragraph();
        this.step = { title: line.slice(3), body: [], show: [], table: [], values: '', thunks: [], question: null, predict: false };
        this.lesson.steps.push(this.step);
      } else if (word) {
        this.end_paragraph();
        this.order(word[1], (word[2] ?? '').trim());
      } else if (!line.trim()) this.end_paragraph();
      else this.paragraph.push(line);
    }
    this.end_paragraph();
    if (!this.lesson.title || !this.lesson.steps.length) fault(this.name, 0, 'a title and a step are wanted');
    for (const one of this.lesson.steps) complete(this.name, one);
    return this.lesson;
  }

  private wrong(what: string): never {
    return fault(this.name, this.at, what);
  }

  private has(module: string): boolean {
    return this.lesson.modules.has(module) || this.lesson.runs.some((run) => run.name === module);
  }
  private known(module: string): string {
    return this.has(module) ? module : this.wrong(`there is no module ${module}`);
  }
  private fresh(module: string): string {
    return /^[a-z][\w-]*$/.test(module) && !this.has(module) ? module : this.wrong(`not the name of a new module: ${module}`);
  }

  private parts(rest: string, form: string): string[] {
    const parts = rest.split(' | ');
    return parts.length === form.split(' | ').length ? parts : this.wrong(`${form} is wanted`);
  }

  private end_paragraph(): void {
    if (!this.paragraph.length) return;
    const said = this.paragraph.join('\n'), step = this.step, question = step?.question;
    this.paragraph = [];
    if (step && question) question.after += (question.after ? '\n\n' : '') + said; // shown when it is answered
    else if (step) step.body.push(said);
    else this.lesson.about += (this.lesson.about ? ' ' : '') + said;
  }

  /** The module in the lines that follow. */
  private fenced(): string {
    if (this.lines[this.at + 1] !== '```') this.wrong('a module between lines of ``` is wanted');
    const from = this.at + 2, to = this.lines.indexOf('```', from);
    if (to < 0) this.wrong('``` is not closed');
    this.at = to;
    return this.lines.slice(from, to).join('\n') + '\n';
  }

  private order(word: string, rest: string): void {
    const words = rest.split(/\s+/).filter(Boolean),
      step = this.step ?? this.wrong('a step (`## Title`) comes first'),
      known = (module: string) => this.known(module);
    switch (word) {
      case 'module':
        this.lesson.modules.set(this.fresh(rest), this.fenced());
        return;
      case 'run':
        this.lesson.runs.push(this.run(words));
        return;
      case 'show':
        step.show.push(...words.map(known));
        return;
      case 'table':
        step.table.push(...words.map(known));
        return;
      case 'thunks':
        step.thunks.push(...words.map(known));
        return;
      case 'values':
        step.values = known(rest);
        return;
      case 'predict':
        step.predict = true;
        return;
      case 'choose':
        step.question = { kind: 'choose', text: rest, answer: '', options: [], after: '' };
        return;
      case 'number':
        step.question = { kind: 'number', text: rest, answer: '', wrong: [], after: '' };
        return;
      case 'edit':
        step.question = { kind: 'edit', text: words.slice(1).join(' '), module: known(words[0]), passes: [], expect: [], solution: '', wrong: [], after: '' };
        return;
      default:
        this.of_question(step.question ?? this.wrong(`@${word} without a question before it`), word, rest);
    }
  }

  /** NEW = OLD pass pass:FUEL pass{option=value} */
  private run(words: string[]): Run {
    if (words[1] !== '=' || words.length < 4) this.wrong('@run NEW = OLD PASS… is wanted');
    const run: Run = { name: this.fresh(words[0]), from: this.known(words[2]), passes: [], fuel: {}, options: {} };
    for (const word of words.slice(3)) {
      const [, pass, options, most] = word.match(/^([\w-]+)(?:\{(\w+=\w+(?:,\w+=\w+)*)\})?(?::(\d+))?$/) ?? this.wrong(`no pass: ${word}`);
      run.passes.push(pass);
      if (most) run.fuel[pass] = Number(most);
      for (const option of options?.split(',') ?? []) {
        const [key, value] = option.split('=');
        run.options[`${pass}.${key}`] = value;
      }
    }
    return run;
  }

  private of_question(question: Question, word: string, rest: string): void {
    if (word === 'answer' && question.kind !== 'edit') question.answer = rest;
    else if (word === 'option' && question.kind === 'choose') {
      const [value, label, tells] = this.parts(rest, '@option VALUE | LABEL | TOLD');
      question.options.push({ value, label, tells });
    } else if (word === 'wrong' && question.kind === 'number') {
      const [text, tells] = this.parts(rest, '@wrong NUMBER | TOLD');
      question.wrong.push({ text, tells });
    } else if (question.kind !== 'edit') this.wrong(`@${word} means nothing here`);
    else if (word === 'wrong') question.wrong.push({ tells: rest, text: this.fenced() });
    else if (word === 'solution') question.solution = this.fenced();
    else if (word === 'passes') question.passes = rest.split(/\s+/);
    else if (word === 'expect') {
      const [check, tells] = this.parts(rest, '@expect CHECK | TOLD');
      question.expect.push({ check, tells });
    } else this.wrong(`@${word} means nothing here`);
  }
}

/** A question says how it is checked, and what is wrong. */
function complete(name: string, step: Step): void {
  const q = step.question,
    lacks = (what: string): never => {
      throw new LessonFault(`lesson ${name}: the question of "${step.title}" lacks ${what}`);
    };
  if (!q) return;
  if (q.kind === 'edit') {
    if (!q.expect.length) lacks('@expect');
    if (!q.solution) lacks('@solution');
    if (!q.wrong.length) lacks('@wrong');
  } else if (!q.answer) lacks('@answer');
  if (q.kind === 'choose' && q.options.length < 2) lacks('options');
  if (q.kind === 'number' && !q.wrong.length) lacks('@wrong');
}
