// A lesson's text, read: steps, modules, what is shown, questions with their checks. The form is in docs/formats.md. No
// part of this asks the page or the engine, so that tests read the same files in the same way.

export interface Option { value: string; label: string; tells: string }
export interface Wrong { text: string; tells: string }

export type Question =
  | { kind: 'choose'; text: string; answer: string; options: Option[]; after: string }
  | { kind: 'number'; text: string; answer: string; wrong: Wrong[]; after: string }
  | { kind: 'edit'; text: string; module: string; passes: string[]; expect: { check: string; tells: string }[]; solution: string; wrong: Wrong[]; after: string };

/** `fuel`: of a pass the most rewrites that it makes; `options`: by `pass.option`. */
export interface Run { name: string; from: string; passes: string[]; fuel: Record<string, number>; options: Record<string, string> }

export interface Step {
  title: string;
  body: string[];           // paragraphs; those of lines that begin with `- ` are lists, with four blanks code
  show: string[];           // modules side by side as tabs, the last one first in sight
  table: string[];          // modules whose kernels and bytes are told
  values: string;           // module that is evaluated
  thunks: string[];         // modules whose thunks are listed
  question: Question | null;
  predict: boolean;
}

export interface Lesson { name: string; title: string; about: string; steps: Step[]; modules: Map<string, string>; runs: Run[] }

class LessonFault extends Error {}

function fault(name: string, line: number, what: string): never { throw new LessonFault(`lessons/${name}.md:${line + 1}: ${what}`); }

/** Reads a lesson; throws with file and line where the text is not of the form. */
export function read_lesson(name: string, text: string): Lesson {
  const lines = text.split('\n');
  const lesson: Lesson = { name, title: '', about: '', steps: [], modules: new Map(), runs: [] };
  let step: Step | null = null, paragraph: string[] = [], at = 0;
  const here = (): Step => step ?? fault(name, at, 'a step (`## Title`) comes first');
  const known = (module: string) => { if (!lesson.modules.has(module) && !lesson.runs.some(run => run.name === module)) fault(name, at, `there is no module ${module}`); return module; };
  const fresh = (module: string) => { if (!/^[a-z][\w-]*$/.test(module) || lesson.modules.has(module) || lesson.runs.some(run => run.name === module)) fault(name, at, `not the name of a new module: ${module}`); return module; };
  const end_paragraph = () => {
    if (!paragraph.length) return;
    const said = paragraph.join('\n');
    paragraph = [];
    const question = step?.question;
    if (step && question) question.after += (question.after ? '\n\n' : '') + said;   // shown when it is answered
    else if (step) step.body.push(said);
    else lesson.about += (lesson.about ? ' ' : '') + said;
  };
  const fenced = (): string => {
    if (lines[at + 1] !== '```') fault(name, at, 'a module between lines of ``` is wanted');
    const from = at + 2;
    let to = from;
    while (to < lines.length && lines[to] !== '```') to++;
    if (to === lines.length) fault(name, at, '``` is not closed');
    at = to;
    return lines.slice(from, to).join('\n') + '\n';
  };
  const directive = (word: string, rest: string) => {
    const words = rest.split(/\s+/).filter(Boolean), question = here().question;
    switch (word) {
      case 'module': lesson.modules.set(fresh(rest), fenced()); return;
      case 'run': {   // NEW = OLD pass pass:FUEL pass{option=value}
        if (words[1] !== '=' || words.length < 4) fault(name, at, '@run NEW = OLD PASS… is wanted');
        const run: Run = { name: fresh(words[0]), from: known(words[2]), passes: [], fuel: {}, options: {} };
        for (const word of words.slice(3)) {
          const [, pass, options, most] = word.match(/^([\w-]+)(?:\{(\w+=\w+(?:,\w+=\w+)*)\})?(?::(\d+))?$/) ?? fault(name, at, `no pass: ${word}`);
          run.passes.push(pass);
          if (most) run.fuel[pass] = Number(most);
          for (const option of options?.split(',') ?? []) { const [key, value] = option.split('='); run.options[`${pass}.${key}`] = value; }
        }
        lesson.runs.push(run);
        return;
      }
      case 'show': here().show.push(...words.map(known)); return;
      case 'table': here().table.push(...words.map(known)); return;
      case 'values': here().values = known(rest); return;
      case 'thunks': here().thunks.push(...words.map(known)); return;
      case 'predict': here().predict = true; return;
      case 'choose': here().question = { kind: 'choose', text: rest, answer: '', options: [], after: '' }; return;
      case 'number': here().question = { kind: 'number', text: rest, answer: '', wrong: [], after: '' }; return;
      case 'edit': here().question = { kind: 'edit', text: words.slice(1).join(' '), module: known(words[0]), passes: [], expect: [], solution: '', wrong: [], after: '' }; return;
      default: break;
    }
    if (!question) fault(name, at, `@${word} without a question before it`);
    if (word === 'answer' && question.kind !== 'edit') question.answer = rest;
    else if (word === 'option' && question.kind === 'choose') {
      const parts = rest.split(' | ');
      if (parts.length !== 3) fault(name, at, '@option VALUE | LABEL | WHAT IS SAID is wanted');
      question.options.push({ value: parts[0], label: parts[1], tells: parts[2] });
    } else if (word === 'wrong' && question.kind === 'number') {
      const parts = rest.split(' | ');
      if (parts.length !== 2) fault(name, at, '@wrong NUMBER | WHAT IS SAID is wanted');
      question.wrong.push({ text: parts[0], tells: parts[1] });
    } else if (word === 'wrong' && question.kind === 'edit') question.wrong.push({ tells: rest, text: fenced() });
    else if (word === 'passes' && question.kind === 'edit') question.passes = words;
    else if (word === 'expect' && question.kind === 'edit') {
      const parts = rest.split(' | ');
      if (parts.length !== 2) fault(name, at, '@expect CHECK | WHAT IS SAID WHERE IT FAILS is wanted');
      question.expect.push({ check: parts[0], tells: parts[1] });
    } else if (word === 'solution' && question.kind === 'edit') question.solution = fenced();
    else fault(name, at, `@${word} means nothing here`);
  };
  for (; at < lines.length; at++) {
    const line = lines[at], word = line.match(/^@(\w+)(?:\s+(.*))?$/);
    if (line.startsWith('# ')) lesson.title = line.slice(2);
    else if (line.startsWith('## ')) {
      end_paragraph();
      step = { title: line.slice(3), body: [], show: [], table: [], values: '', thunks: [], question: null, predict: false };
      lesson.steps.push(step);
    } else if (word) { end_paragraph(); directive(word[1], (word[2] ?? '').trim()); }
    else if (!line.trim()) end_paragraph();
    else paragraph.push(line);
  }
  end_paragraph();
  if (!lesson.title || !lesson.steps.length) fault(name, 0, 'a title and a step are wanted');
  for (const one of lesson.steps) complete(name, one);
  return lesson;
}

/** A question says how it is checked, and what is wrong. */
function complete(name: string, step: Step): void {
  const q = step.question, lacks = (what: string): never => { throw new LessonFault(`lessons/${name}.md: the question of "${step.title}" lacks ${what}`); };
  if (!q) return;
  if (q.kind === 'edit') {
    if (!q.expect.length) lacks('@expect');
    if (!q.solution) lacks('@solution');
    if (!q.wrong.length) lacks('@wrong');
  } else if (!q.answer) lacks('@answer');
  if (q.kind === 'choose' && q.options.length < 2) lacks('options');
  if (q.kind === 'number' && !q.wrong.length) lacks('@wrong');
}
