// What a lesson's modules and questions come to, asked of the engine: a right answer is what it computes, not what the
// lesson's author believed.
import { Decision, Engine, Op, Rewrite, Row, StateRef, Values } from '../protocol';
import { Lesson, Question, Run } from './lesson';

/** A module of the lesson, or what was made of one. `rows`: the passes that made it; `from`: what they ran on. */
export interface Made {
  at: StateRef;
  from: StateRef | null;
  rows: Row[];
}

/** `tells`: what the lesson says to this answer; `found`: what the engine found, where the answer is not that; `instead`:
 *  what the lesson says to the answer that is. */
export interface Verdict {
  right: boolean;
  tells: string;
  found: string;
  instead?: string;
  made?: Made;
}

export interface Kernel {
  name: string;
  bytes: number;
  seconds: number;
}

/** Asks for what the steps need, once. */
export class Workshop {
  private made = new Map<string, Promise<Made>>();
  constructor(readonly engine: Engine, readonly lesson: Lesson) {}

  module(name: string): Promise<Made> {
    let made = this.made.get(name);
    if (!made) {
      const text = this.lesson.modules.get(name), run = this.lesson.runs.find((one) => one.name === name);
      made = text !== undefined ? this.take(text, name) : run ? this.run(run) : Promise.reject(new Error(`there is no module ${name}`));
      made.catch(() => this.made.delete(name));
      this.made.set(name, made);
    }
    return made;
  }

  /** The engine was started anew and knows none of them. */
  forget(): void {
    this.made.clear();
  }

  async take(text: string, name: string): Promise<Made> {
    const { at } = await this.engine.edit({ text, name });
    return { at, from: null, rows: [] };
  }

  async ran(made: Made, passes: string[], extras: { fuel?: Record<string, number>; options?: Record<string, string> } = {}): Promise<Made> {
    if (!passes.length) return made;
    const given = Object.entries(extras).filter(([, values]) => Object.keys(values ?? {}).length);
    const result = await this.engine.run({ at: made.at, passes, ...Object.fromEntries(given) });
    if (result.refused.length) throw new Error(result.refused.join('; '));
    return { at: result.at, from: made.at, rows: result.rows };
  }

  private async run(run: Run): Promise<Made> {
    // A module of its own, so that a name stays what it was whatever else runs on the one before.
    const from = await this.module(run.from), text = await this.text(from.at);
    const { at } = await this.engine.edit({ text, name: run.name, at: from.at });
    return this.ran({ at, from: from.at, rows: [] }, run.passes, { fuel: run.fuel, options: run.options });
  }

  async text(at: StateRef): Promise<string> {
    const { lines } = await this.engine.text({ at, full: true });
    return lines.join('\n') + '\n';
  }

  async kernels(at: StateRef): Promise<Kernel[]> {
    const { ops } = await this.engine.roofline({ at });
    return ops.map((op) => ({ name: op.name, bytes: op.bytes * op.times, seconds: op.seconds * op.times }));
  }

  async thunks(at: StateRef): Promise<Awaited<ReturnType<Engine['thunks']>>['thunks']> {
    return (await this.engine.thunks({ at })).thunks;
  }

  async rewrites(made: Made): Promise<Rewrite[]> {
    const all: Rewrite[] = [];
    for (const row of made.rows) {
      if (row.rewrites) all.push(...(await this.engine.rewrites({ module: made.at.module, row: row.row })).rewrites);
    }
    return all;
  }

  private async op(at: StateRef, name: string): Promise<Op> {
    const hit = (await this.engine.search({ at, query: `name:${name}`, limit: 1000 })).hits.find((one) => one.name === name);
    if (!hit) throw new Error(`there is no ${name}`);
    return this.engine.op({ at, id: hit.id });
  }

  /** What an expression `WHAT … in MODULE` comes to, in words or digits; docs/formats.md lists them. `named`: modules beside
   *  the lesson's own. */
  async value(expression: string, named: Record<string, Made> = {}): Promise<string> {
    const parts = expression.trim().match(/^(\w+)\s*(.*?)\s*\bin\s+([\w-]+)$/);
    if (!parts) throw new Error(`no expression: ${expression}`);
    const [, what, rest, name] = parts, made = named[name] ?? await this.module(name), at = made.at;
    switch (what) {
      case 'count':
        return String((await this.engine.search({ at, query: rest, limit: 1 })).total);
      case 'instructions':
        return String((await this.engine.text({ at })).ids.filter((id) => id !== null).length);
      case 'bytes':
        return String((await this.kernels(at)).reduce((sum, kernel) => sum + kernel.bytes, 0));
      case 'kernels':
        return String((await this.kernels(at)).length);
      case 'thunks':
        return String((await this.thunks(at)).length);
      case 'peak':
        return String((await this.engine.memory({ at })).peak_bytes);
      case 'temporaries':
        return String((await this.engine.memory({ at })).temporaries_bytes);
      case 'rewrites':
        return String((await this.rewrites(made)).length);
      case 'rewrite':
        return (await this.rewrites(made))[Number(rest) - 1]?.ids.map((one) => one.name).join(' ') ?? 'none';
      case 'rule':
        return (await this.rewrites(made))[Number(rest) - 1]?.rule ?? 'none';
      case 'verdict':
        return (await this.decision(made, rest))?.verdict ?? 'none';
      case 'shape':
        return (await this.op(at, rest)).shape;
      case 'opcode':
        return (await this.op(at, rest)).opcode;
      case 'users':
        return String((await this.op(at, rest)).user_count);
      case 'elements':
        return String((await this.evaluated(at, rest)).elements);
      case 'result':
        return (await this.evaluated(at, rest)).text;
      default:
        throw new Error(`no expression: ${expression}`);
    }
  }

  private async decision(made: Made, pair: string): Promise<Decision | undefined> {
    const [producer, consumer] = pair.split(/\s+/), { decisions } = await this.engine.decisions({ module: made.at.module });
    return decisions.find((one) => one.producer === producer && one.consumer === consumer);
  }

  private async evaluated(at: StateRef, name: string): Promise<Values['values'][0]> {
    const { id } = await this.op(at, name), found = await this.engine.evaluate({ at }), value = found.values.find((one) => one.id === id);
    if (!value) throw new Error(found.note || `${name} has no value`);
    return value;
  }

  /** The same in a sentence, as far as an answer that is not it is told. */
  private async in_words(expression: string, value: string, named: Record<string, Made> = {}): Promise<string> {
    const what = expression.trim().split(/\s+/)[0], number = Number(value), pair = expression.trim().match(/^verdict\s+(.*?)\s+in\s+([\w-]+)$/);
    if (pair) return `The engine's pass says of this pair: ${(await this.decision(named[pair[2]] ?? await this.module(pair[2]), pair[1]))?.why ?? 'nothing'}.`;
    if (what === 'bytes' || what === 'peak' || what === 'temporaries') {
      return `The engine finds ${number.toLocaleString('en')} bytes${
        number >= 1 << 20 ? `, ${+(number / (1 << 20)).toFixed(2)} MiB` : number >= 1024 ? `, ${+(number / 1024).toFixed(2)} KiB` : ''
      }.`;
    }
    if (what === 'count') return `The engine finds ${number.toLocaleString('en')} of them.`;
    if (what === 'rewrite') return `The engine's first step here is about ${value.split(' ').join(' and ')}.`;
    const unit = { kernels: ' kernel', thunks: ' thunk', instructions: ' instruction', elements: ' number', rewrites: ' rewrite', users: ' user' }[what];
    if (unit) return `The engine finds ${number.toLocaleString('en')}${unit}${number === 1 ? '' : 's'}.`;
    return `The engine finds ${/^\d+$/.test(value) ? number.toLocaleString('en') : value}.`;
  }

  /** `EXPRESSION = VALUE` (or !=, <, <=, >, >=), `same NAME` (start computes what the module does); VALUE a word or an
   *  expression. Null where it holds, else what the engine found. */
  async fails(check: string, named: Record<string, Made>): Promise<string | null> {
    const same = check.match(/^same\s+([\w-]+)$/);
    if (same) {
      // Of other parameters or another result the engine says that they cannot be compared: an answer, too.
      const compared = await this.engine.compare({ a: (await this.module(same[1])).at, b: named.start.at }).catch((error: Error) => ({
        equal: false,
        text: error.message,
      }));
      return compared.equal ? null : `The engine compared the results: ${compared.text}`;
    }
    const parts = check.match(/^(.*?)\s(=|!=|<=|>=|<|>)\s(.*)$/);
    if (!parts) throw new Error(`no check: ${check}`);
    const a = await this.value(parts[1], named), b = / in /.test(parts[3]) ? await this.value(parts[3], named) : parts[3].trim(), less = Number(a) - Number(b);
    const holds = parts[2] === '='
      ? a === b
      : parts[2] === '!='
      ? a !== b
      : parts[2] === '<'
      ? less < 0
      : parts[2] === '<='
      ? less <= 0
      : parts[2] === '>'
      ? less > 0
      : less >= 0;
    return holds ? null : this.in_words(parts[1], a, named);
  }

  /** Judges an answer: an option's value, a number, or a changed module's text. */
  async judge(question: Question, given: string): Promise<Verdict> {
    if (question.kind === 'edit') return this.judge_edit(question, given);
    const right = await this.value(question.answer);
    if (question.kind === 'choose') {
      return {
        right: given === right,
        tells: question.options.find((one) => one.value === given)?.tells ?? '',
        found: given === right ? '' : await this.in_words(question.answer, right),
        instead: given === right ? '' : question.options.find((one) => one.value === right)?.tells,
      };
    }
    const number = number_of(given);
    if (number === null) return { right: false, tells: 'A number is wanted, such as 4096 or 4 MiB.', found: '' };
    if (number === Number(right)) return { right: true, tells: '', found: '' };
    return {
      right: false,
      tells: question.wrong.find((one) => number_of(one.text) === number)?.tells ?? 'Not this number.',
      found: await this.in_words(question.answer, right),
    };
  }

  private async judge_edit(question: Question & { kind: 'edit' }, given: string): Promise<Verdict> {
    const start = await this.take(given, 'mine'), end = await this.ran(start, question.passes);
    for (const one of question.expect) {
      const found = await this.fails(one.check, { start, end });
      if (found !== null) return { right: false, tells: one.tells, found, made: end };
    }
    return { right: true, tells: '', found: '', made: end };
  }
}

/** `12`, `4 MiB`, `12,582,912`; null where it is none. */
export function number_of(text: string): number | null {
  const parts = text.trim().replace(/,(?=\d{3})/g, '').match(/^(-?\d+(?:\.\d+)?)\s*(k|ki|kib|m|mi|mib|g|gi|gib|kb|mb|gb)?\s*(?:b|bytes?)?$/i);
  if (!parts) return null;
  const unit = (parts[2] ?? '').toLowerCase(), power = unit ? 'kmg'.indexOf(unit[0]) + 1 : 0;
  return Number(parts[1]) * Math.pow(unit.includes('i') ? 1024 : 1000, power);
}
