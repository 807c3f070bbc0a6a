// Predict the compiler: decisions of XLA's priority-fusion in modules of real models, one after the other, scored. What
// was said so far is letters in the address: f for fused, k for kept apart.
import { button, foreign, h, plural } from '../dom';

/** One decision, as tests/dev/docs/lesson_decisions.py takes it from a dump. Times in microseconds, XLA's own estimates; null
 *  where it did not come to estimating and `reason` says why. */
export interface Decision {
  model: string;
  text: string;
  producer: string;
  consumers: string[];
  verdict: 'fused' | 'declined';
  us_fused: number | null;
  us_unfused: number | null;
  reason: string;
  hint: string;
}

export function read_decisions(text: string): Decision[] {
  return (JSON.parse(text) as { decisions: Decision[] }).decisions;
}

export function valid_said(said: string, most: number): string {
  return said.replace(/[^fk]/g, '').slice(0, most);
}

export function right(decision: Decision, letter: string): boolean {
  return (decision.verdict === 'fused') === (letter === 'f');
}

export function score(decisions: Decision[], said: string): number {
  return [...said].filter((letter, i) => right(decisions[i], letter)).length;
}

const micro = (us: number) => Number(us.toPrecision(us < 1000 ? 4 : 6)).toLocaleString('en') + ' µs';

/** What XLA did, with its numbers. */
export function tell_decision(decision: Decision): HTMLElement {
  const { us_fused: fused, us_unfused: apart } = decision;
  const numbers = fused !== null && apart !== null
    ? h('p', null, 'XLA reckoned ', h('b', null, micro(apart)), ' apart and ', h('b', null, micro(fused)), ' fused.')
    : null;
  return h(
    'div',
    null,
    h('p', null, decision.verdict === 'fused' ? 'XLA fused it.' : 'XLA kept them apart.'),
    numbers,
    decision.reason ? h('p', null, 'Its reason: “', foreign(decision.reason, 300), '”.') : null,
    decision.hint ? h('p', { class: 'faint' }, decision.hint) : null,
  );
}

/** `shown`: the decision in sight. `said` is how far the reader came; one more than `shown` where it is answered. */
export function predict_element(decisions: Decision[], said: string, shown: number, say: (letter: string) => void, go: (shown: number) => void): HTMLElement {
  const total = decisions.length, one = decisions[shown], answered = shown < said.length;
  const marks = h(
    'ol',
    { class: 'marks', 'aria-label': 'Decisions so far' },
    ...decisions.map((decision, i) => {
      const state = i >= said.length ? 'open' : right(decision, said[i]) ? 'right' : 'wrong';
      return h(
        'li',
        { class: 'mark-box is-' + state + (i === shown ? ' here' : ''), title: `decision ${i + 1}: ${state}` },
        i >= said.length ? '·' : state === 'right' ? '✓' : '✗',
      );
    }),
  );
  const of = `${score(decisions, said)} right of ${said.length}`;
  if (!one) {
    return h(
      'div',
      { class: 'question predict' },
      marks,
      h('h3', { class: 'score' }, `${of}`),
      h('p', null, verdict_of(decisions, said)),
      button('Once more', () => say('')),
    );
  }
  const users = one.consumers.map((name) => h('code', null, name)), list = users.flatMap((user, i) => i ? [', ', user] : [user]);
  const letters: [string, string][] = [['f', 'Fused'], ['k', 'Kept apart']];
  return h(
    'div',
    { class: 'question predict' },
    marks,
    h('p', { class: 'score' }, said.length ? of : plural(total, 'decision')),
    h('h3', null, `${shown + 1}. Is `, h('code', null, one.producer), ' fused into ', ...list, '?'),
    h('p', { class: 'faint' }, 'In ', foreign(one.model, 80), ', compiled for an H200.'),
    h(
      'div',
      { class: 'options' },
      ...letters.map(([letter, label]) =>
        button(`${label} (${letter})`, () => say(said + letter), {
          disabled: answered,
          class: answered && said[shown] === letter ? 'option chosen' : 'option',
          data: { letter },
        })
      ),
    ),
    answered
      ? h(
        'div',
        { class: 'verdict ' + (right(one, said[shown]) ? 'is-right' : 'is-wrong'), role: 'status' },
        h('b', null, right(one, said[shown]) ? '✓ Right.' : '✗ No.'),
        tell_decision(one),
        button(shown + 1 < total ? 'Next decision (Enter)' : 'The score (Enter)', () => go(shown + 1), { class: 'primary' }),
      )
      : null,
  );
}

function verdict_of(decisions: Decision[], said: string): string {
  const fused = decisions.filter((one) => one.verdict === 'fused').length, always = Math.max(fused, decisions.length - fused), mine = score(decisions, said);
  return `Who always says the same gets ${always}. ` +
    (mine > always + 3
      ? 'You see what the compiler sees.'
      : mine > always
      ? 'You are ahead of a fixed rule: the numbers of those that went wrong show what is missing.'
      : 'Look at those that went wrong again: what did their numbers say?');
}
