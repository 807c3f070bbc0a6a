// What the first page draws, a card each: where time goes, memory, passes, findings, roofline, fusion. What is not known
// is said so and never drawn as nothing.
import { Decision, Finding, Memory, Overview, Roofline, Row, StateRef, Summary, Thunks } from '../protocol';
import { bar, chart, Column, memory_chart, passes_chart, roofline_chart, roofline_time, stream_sums, thunks_chart } from '../charts';
import { add, button, bytes, fill, foreign, h, link, plural, seconds } from '../dom';
import { Host } from '../host';
import { where_from } from './thunks';

export type By = Summary['by'];
type Basis = 'measured' | 'expected' | 'at least';
type SummaryRow = Summary['rows'][0];

const rows_shown = 10;

/** What the bars' lengths are: measured where there is a profile, else expected, else the bound. */
function basis_of(summary: Summary): Basis {
  return summary.profile !== null ? 'measured' : summary.expected_seconds !== null ? 'expected' : 'at least';
}

/** null: unknown. A sum is unknown where nothing that it adds up is known. */
function time_of(basis: Basis, row: SummaryRow): number | null {
  if (basis === 'measured') return row.ops.some((op) => op.measured_seconds !== null) ? row.measured_seconds : null;
  if (basis === 'expected') return row.expected_seconds;
  return row.unknown_calls === row.kernels ? null : row.least_seconds;
}

const without = (summary: Summary) => summary.expected_without ? `, without ${plural(summary.expected_without, 'call')} of unknown time` : '';

/** `src/model/layer.py:12 (f)`: of a path its last two parts; the whole of it is the title. */
function short_key(key: string): string {
  return key.replace(/^\S*\/([^/\s]+\/[^/\s]+)/, '$1');
}

/** `12 %`, `3.4 %`, `<0.1 %`. */
const percent = (share: number) => share > 0 && share < 0.0005 ? '<0.1 %' : `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
const call_words = (n: number) => n ? `, and ${plural(n, 'call')} of unknown cost` : '';

export function figures(summary: Summary | null, memory: Memory | null, rows: Row[], instructions: number): HTMLElement {
  const figure = (value: string, words: string, name = '') => h('div', { class: 'figure ' + name }, h('b', null, value), h('span', null, words));
  const passes = rows.filter((row) => row.kind === 'pass');
  const at_least = (s: Summary) =>
    `at least, on ${s.device_known ? '' : 'an '}${s.device}${s.device_known ? '' : ' (no data sheet of the target is known)'}${call_words(s.unknown_calls)}`;
  const times: (HTMLElement | null)[] = summary === null ? [figure('…', 'one call, not computed yet')] : [
    summary.measured_seconds !== null ? figure(seconds(summary.measured_seconds + (summary.between_seconds ?? 0)), 'one call, measured', 'is-measured') : null,
    summary.measured_seconds === null && summary.expected_seconds !== null
      ? figure(seconds(summary.expected_seconds), 'one call, expected' + without(summary), 'is-expected')
      : null,
    figure(summary.least_seconds > 0 ? seconds(summary.least_seconds) : 'unknown', at_least(summary)),
  ];
  return h(
    'div',
    { class: 'figures' },
    ...times,
    memory
      ? figure(
        memory.peak_bytes > 0 ? bytes(memory.peak_bytes) : 'unknown',
        'of memory at the peak' + (memory.estimated ? ', estimated' : '') + (memory.too_large ? ': it does not fit' : ''),
        memory.too_large ? 'is-wrong' : '',
      )
      : null,
    figure(instructions.toLocaleString('en'), 'instructions in the last stage'),
    passes.length ? figure(passes.filter((row) => row.changed).length.toLocaleString('en'), `of ${plural(passes.length, 'pass', 'passes')} changed it`) : null,
  );
}

/** Name, bar, value and share of a row, as they are in a line of a list of bars. */
function bar_parts(name: HTMLElement, drawn: SVGElement, value: string, share: string): HTMLElement[] {
  return [
    h('span', { class: 'bar-name' }, name),
    drawn as unknown as HTMLElement,
    h('span', { class: 'bar-time' }, value),
    h('span', { class: 'bar-share' }, share),
  ];
}

/** One that does not open. */
function bar_line(name: HTMLElement, drawn: SVGElement, value: string, share: string): HTMLElement {
  return h('div', { class: 'bar-row' }, h('div', { class: 'bar-line' }, ...bar_parts(name, drawn, value, share)));
}

function kernel_line(host: Host, at: StateRef, basis: Basis, one: SummaryRow['ops'][0]): HTMLElement {
  const time = basis === 'measured' ? one.measured_seconds : basis === 'expected' ? one.expected_seconds : one.least_seconds;
  const least = basis !== 'at least' && one.least_seconds !== null ? `, at least ${seconds(one.least_seconds)}` : '';
  const pick = () => {
    void host.select(one.id, one.name, { at, view: 'graph' });
  };
  return h(
    'li',
    null,
    link(foreign(one.name, 48), pick),
    h('span', { class: 'faint' }, ` ${time === null ? 'unknown' : seconds(time)}${one.times > 1.5 ? `, ${one.times.toFixed(0)} times` : ''}${least}`),
  );
}

/** A bar of time that opens to its kernels. */
function time_row(host: Host, at: StateRef, basis: Basis, row: SummaryRow, time: number | null, longest: number, share: string): HTMLElement {
  const mark = time === null || basis === 'at least' || !(row.least_seconds > 0) ? null : row.least_seconds / longest;
  const drawn = bar(time === null ? null : time / longest, mark, basis === 'at least' ? 'is-least' : 'is-' + basis);
  const left = row.kernels - row.ops.length, unseen = basis === 'measured' ? row.ops.filter((op) => op.measured_seconds === null).length : 0;
  const told = `${plural(row.kernels, 'kernel')}, ${row.least_seconds > 0 ? `at least ${seconds(row.least_seconds)}` : 'no bound is known'}${
    call_words(row.unknown_calls)
  }${unseen ? `; ${unseen} not measured` : ''}`;
  return h(
    'details',
    { class: 'bar-row' },
    h('summary', null, ...bar_parts(foreign(short_key(row.key), 60), drawn, time === null ? 'unknown' : seconds(time), share)),
    h('p', { class: 'faint' }, told, row.key !== short_key(row.key) ? h('span', null, ' · ', foreign(row.key, 200)) : null),
    h(
      'ul',
      { class: 'ops' },
      ...row.ops.map((op) => kernel_line(host, at, basis, op)),
      left > 0 ? h('li', { class: 'faint' }, `… and ${plural(left, 'kernel')} more`) : null,
    ),
  );
}

function basis_words(summary: Summary): HTMLElement {
  const device = `${summary.device_known ? '' : 'an '}${summary.device}`, tick = 'A tick in a bar is what its kernels need at least.';
  if (basis_of(summary) === 'measured') return h('p', { class: 'faint' }, 'Measured, ', foreign(summary.profile as string, 160), `. ${tick}`);
  if (basis_of(summary) === 'expected') {
    return h('p', { class: 'faint' }, `Expected: what such kernels took elsewhere${without(summary)}. Nothing was measured. ${tick}`);
  }
  return h(
    'p',
    { class: 'faint' },
    `At least: by the bytes and operations that ${device} needs time for. Nothing was measured`,
    summary.why_not_expected ? h('span', null, ', nothing is expected: ', foreign(summary.why_not_expected, 160)) : null,
    '.',
  );
}

export function time_card(host: Host, at: StateRef, summary: Summary, choose: (by: By) => void): HTMLElement[] {
  const basis = basis_of(summary), times = summary.rows.map((row) => ({ row, time: time_of(basis, row) }));
  const between = basis === 'measured' ? summary.between_seconds : basis === 'expected' ? summary.expected_between_seconds : null;
  const all = basis === 'measured'
    ? (summary.measured_seconds ?? 0) + (between ?? 0)
    : basis === 'expected'
    ? summary.expected_seconds ?? 0
    : times.reduce((sum, one) => sum + (one.time ?? 0), 0);
  times.sort((a, b) => (b.time ?? -1) - (a.time ?? -1) || b.row.least_seconds - a.row.least_seconds);
  const longest = Math.max(1e-300, between ?? 0, ...times.map((one) => one.time ?? 0));
  const share = (time: number | null) => time !== null && all > 0 ? percent(time / all) : '';
  const line = ({ row, time }: typeof times[0]) => time_row(host, at, basis, row, time, longest, share(time));
  const list = h('div', { class: 'bars' }, ...times.slice(0, rows_shown).map(line));
  if (between) {
    const words = h('span', { class: 'faint' }, basis === 'measured' ? 'between kernels' : 'launches, the call itself');
    list.prepend(bar_line(words, bar(between / longest, null, 'is-between'), seconds(between), share(between)));
  }
  if (times.length > rows_shown) {
    add(
      list,
      button(`${times.length - rows_shown} more`, (event) => {
        (event.target as HTMLElement).remove();
        add(list, ...times.slice(rows_shown, 400).map(line));
      }),
    );
  }
  const tab = (by: By, words: string) => button(words, () => choose(by), { 'aria-pressed': String(by === summary.by), class: 'choice' });
  const out = [
    h('div', { class: 'card-tools' }, h('span', { class: 'faint' }, 'by'), tab('class', 'class'), tab('line', 'source line'), tab('scope', 'scope')),
    basis_words(summary),
    times.length ? list : h('p', null, 'This stage runs no kernel.'),
  ];
  if (summary.loops_of_unknown_length) {
    out.push(h('p', { class: 'faint' }, `${plural(summary.loops_of_unknown_length, 'loop')} without a known trip count, counted once.`));
  }
  return out;
}

export function memory_card(host: Host, at: StateRef, memory: Memory): HTMLElement[] {
  if (!memory.curve.length) return [h('p', null, 'Unknown: nothing is in the device\u2019s memory by this schedule.')];
  const out = [
    h('p', { class: 'bad' }, foreign(memory.too_large, 200)),
    chart((wide) => memory_chart(memory, wide)),
    h(
      'p',
      { class: 'faint' },
      `${memory.estimated ? 'Estimated: the stage has no schedule. ' : ''}The peak by `,
      foreign(memory.from, 120),
      `: ${bytes(memory.peak_bytes)}`,
      memory.at !== null
        ? h(
          'span',
          null,
          ', ',
          link('at this op', () => {
            void host.select(memory.at, '', { at, view: 'graph' });
          }),
        )
        : null,
      Math.abs(memory.curve_peak_bytes - memory.peak_bytes) > 0.01 * memory.peak_bytes
        ? ` (the curve is our own assignment, ${bytes(memory.curve_peak_bytes)})`
        : '',
      '.',
    ),
  ];
  const all = memory.peak_lines.reduce((sum, one) => sum + one.bytes, 0), most = memory.peak_lines[0]?.bytes ?? 1;
  if (memory.peak_lines.length) {
    out.push(
      h('h3', null, 'Live at the peak, by line'),
      h(
        'div',
        { class: 'bars' },
        ...memory.peak_lines.slice(0, 6).map((one) =>
          bar_line(foreign(short_key(one.key), 60), bar(one.bytes / most, null, 'is-memory'), bytes(one.bytes), percent(one.bytes / all))
        ),
      ),
    );
  } else out.push(h('p', null, 'What is alive at the peak is unknown.'));
  const peak = memory.curve.reduce((best, one) => one.bytes > best.bytes ? one : best, memory.curve[0]).place;
  const largest = memory.live.filter((one) => one.kind !== 'host' && one.from <= peak && one.to >= peak).slice(0, 6);
  if (largest.length) {
    out.push(
      h('h3', null, 'Largest buffers there'),
      h(
        'ul',
        { class: 'ops' },
        ...largest.map((one) =>
          h(
            'li',
            null,
            one.id !== null
              ? link(foreign(one.name, 48), () => {
                void host.select(one.id, one.name, { at, view: 'graph' });
              })
              : foreign(one.name, 48),
            h('span', { class: 'faint' }, ` ${bytes(one.bytes)}, ${one.kind} `, foreign(one.source, 60)),
          )
        ),
      ),
    );
  }
  out.push(button('All of memory (m)', () => {
    void host.go({ at, view: 'memory' });
  }));
  return out;
}

export function passes_card(host: Host, module: number, rows: Row[]): HTMLElement[] {
  const columns = new Map<number, Column>();
  for (const row of rows) {
    if (row.state === null || row.kind === 'pipeline-start' || row.kind === 'input') continue;
    const much = row.added + row.removed + row.modified, known = columns.get(row.state);
    if (!known || much > known.much) columns.set(row.state, { row, state: row.state, much, number: host.session.number_of({ module, state: row.state }) });
  }
  const list = [...columns.values()].sort((a, b) => a.state - b.state);
  if (!list.length) return [h('p', null, 'No pass is known: there is one stage.')];
  const pick = (column: Column) => {
    void host.go({ at: { module, state: column.state }, view: 'graph', against: null, op: null, name: '' });
  };
  const most = [...list].filter((one) => one.much > 0).sort((a, b) => b.much - a.much).slice(0, 6);
  return [
    h('p', { class: 'faint' }, 'Instructions that are new, gone or changed, by stage; a click shows the stage.'),
    chart((wide) => passes_chart(list, wide, pick)),
    h(
      'ol',
      { class: 'most-changed' },
      ...most.map((one) =>
        h(
          'li',
          null,
          h('span', { class: 'number' }, one.row.number === null ? '' : one.number),
          ' ',
          link(foreign(one.row.pass || one.row.name, 48), () => pick(one)),
          h(
            'span',
            { class: 'faint' },
            ' ',
            h('span', { class: 'mark-new' }, `+${one.row.added}`),
            ' ',
            h('span', { class: 'mark-gone' }, `−${one.row.removed}`),
            ' ',
            h('span', { class: 'mark-changed' }, `~${one.row.modified}`),
          ),
        )
      ),
    ),
    button('Changes, stage by stage (d)', () => {
      void host.go({ at: { module, state: most[0]?.state ?? 0 }, view: 'diff' });
    }),
  ];
}

/** In words and as the card's stripe: what findings of a kind cost of the bound of one call. */
function weight_of(list: Finding[]): { name: string; words: string } {
  const sum = (of: (one: Finding) => number | null) => list.reduce((all, one) => all + (of(one) ?? 0), 0),
    all = list.length > 1 ? `, all ${list.length} together` : '';
  const time = sum((one) => one.least_seconds), share = sum((one) => one.share), memory = sum((one) => one.bytes);
  if (!(time > 0)) return { name: 'of-memory', words: (memory > 0 ? `${bytes(memory)} of memory` : 'gain unknown') + all };
  const size = share >= 0.1 ? 'large' : share >= 0.02 ? 'medium' : 'small';
  return { name: 'is-' + size, words: `${size}: ${seconds(time)}, ${percent(share)} of one call${all}` };
}

/** `tried on dot.5: … 3.1 ms instead of 4.0 ms`; null where nobody tried. */
function tried_words(one: Finding): HTMLElement | null {
  const tried = one.tried;
  if (!tried) return null;
  const out = h('p', { class: 'faint' }, 'Tried on ', foreign(one.name, 48), ': ', foreign(tried.what, 200));
  if (!tried.compiled) return out;
  const from_to = (before: number | null, after: number | null, say: (n: number) => string) =>
    before === null || after === null ? 'unknown' : `${say(after)} instead of ${say(before)}`;
  add(
    out,
    `, compiled: ${from_to(tried.seconds_before, tried.seconds_after, seconds)} of one call, ${
      from_to(tried.allocated_before, tried.allocated_after, bytes)
    } of memory`,
  );
  return out;
}

export function findings_card(host: Host, at: StateRef, overview: Overview): HTMLElement[] {
  if (overview.findings === null) return [h('p', null, 'Unknown: they are not looked for in modules that were made here.')];
  if (!overview.findings.length) return [h('p', { class: 'faint' }, 'Nothing of what is looked for was found.')];
  const kinds = new Map<string, Finding[]>();
  for (const one of overview.findings) kinds.set(one.kind, [...kinds.get(one.kind) ?? [], one]);
  const cost = (list: Finding[]) => list.reduce((all, one) => all + (one.least_seconds ?? 0), 0);
  const to = (one: Finding) =>
    one.id !== null
      ? link(foreign(one.name, 48), () => {
        void host.select(one.id, one.name, { at, view: 'graph' });
      })
      : foreign(one.name, 48);
  return [
    h(
      'p',
      { class: 'faint' },
      'What the program\u2019s author can change. Costs are bounds, what the kernels in question need at least: large from 10 %, medium from 2 % of the bound of one call.',
    ),
    h(
      'div',
      { class: 'found-cards' },
      ...[...kinds].sort((a, b) => cost(b[1]) - cost(a[1])).slice(0, 9).map(([kind, list]) => {
        const one = list[0], weight = weight_of(list);
        return h(
          'article',
          { class: 'found-card ' + weight.name },
          h('div', { class: 'found-head' }, h('b', null, foreign(kind.replace(/-/g, ' '), 40)), h('span', { class: 'weight' }, weight.words)),
          h('p', { class: 'faint' }, foreign(one.source || 'line unknown', 60), ' · ', to(one)),
          h('p', null, foreign(one.what, 220)),
          one.advice ? h('p', { class: 'advice' }, '→ ', foreign(one.advice, 260)) : null,
          tried_words(list.find((it) => it.tried?.compiled) ?? list.find((it) => it.tried) ?? one),
          list.length > 1
            ? h(
              'details',
              null,
              h('summary', null, `${list.length - 1} more such`),
              h(
                'ul',
                { class: 'ops' },
                ...list.slice(1, 30).map((more) =>
                  h(
                    'li',
                    null,
                    to(more),
                    h(
                      'span',
                      { class: 'faint' },
                      ` ${more.least_seconds !== null ? seconds(more.least_seconds) : more.bytes !== null ? bytes(more.bytes) : ''} `,
                      foreign(more.source, 50),
                    ),
                  )
                ),
              ),
            )
            : null,
        );
      }),
    ),
  ];
}

export function roofline_card(host: Host, at: StateRef, roof: Roofline): HTMLElement[] {
  const time = roofline_time(roof),
    drawn = roof.ops.filter((op) => op.flops > 0 && op.bytes > 0 && (time.of(op) ?? 0) > 0).length,
    left = roof.ops.length - drawn;
  if (!drawn) return [h('p', null, 'No kernel has a known number of operations and bytes, and a time.')];
  const told = {
    measured: 'Dots are kernels as they were measured.',
    expected: 'Nothing was measured: dots are kernels at the time that is expected of them.',
    'at least': 'Nothing was measured: dots are where the bound puts kernels, on the roof, or below it by their launch.',
  }[time.words];
  return [
    h(
      'p',
      { class: 'faint' },
      `${told} Left of the bend ${roof.device} waits for memory, right of it for arithmetic; a larger dot takes more time.`,
      left ? ` Not drawn: ${plural(left, 'kernel')} without arithmetic or with an unknown time.` : '',
    ),
    chart((wide) =>
      roofline_chart(roof, wide, 320, (op) => {
        void host.select(op.id, op.name, { at, view: 'graph' });
      })
    ),
    button('As a table (l)', () => {
      void host.go({ at, view: 'roofline' });
    }),
  ];
}

export function thunks_card(host: Host, at: StateRef, answer: Thunks): HTMLElement[] {
  if (!answer.thunks.length) return [h('p', null, 'This stage has no thunks.')];
  const { sums } = stream_sums(answer), aside = sums.filter((one) => one.name !== 'main'), waits = sums.reduce((all, one) => all + one.waits, 0);
  return [
    h(
      'p',
      { class: 'faint' },
      aside.length
        ? `${seconds(aside.reduce((all, one) => all + one.busy, 0))} of work on other streams than the main one, of which ${seconds(waits)} are waited for. `
        : 'All of it runs on the main stream. ',
      `Times are bounds, one iteration of each loop${aside.some((one) => one.name.startsWith('communication')) ? ', collectives by memory alone' : ''}; `,
      where_from(answer),
    ),
    chart((wide) =>
      thunks_chart(answer, wide, (thunk) => {
        if (thunk.id !== null) void host.select(thunk.id, thunk.name, { at, view: 'graph' });
      })
    ),
    ...answer.notes.map((note) => h('p', { class: 'faint' }, foreign(note, 400))),
    button('All thunks (y)', () => {
      void host.go({ at, view: 'thunks' });
    }),
  ];
}

/** A reason without what differs from pair to pair: times, numbers and names. */
function kind_of(one: Decision): string {
  return one.why.replace(/, [\d.e+-]+ µs fused, .*$/, '').replace(/%?[\w-]*[a-z_][\w-]*\.[\w.-]*\d/g, '…').replace(/\d+(\.\d+)?/g, 'N').slice(0, 160) ||
    'no reason is recorded';
}

export function fusion_card(host: Host, module: number, decisions: Decision[], roof: Roofline | null): HTMLElement[] {
  if (!decisions.length) {
    return [
      h(
        'p',
        null,
        'Unknown: what is open here has no fusion decisions (XLA\u2019s are in priority_fusion_dump.txt; a page leaves out files that are too large).',
      ),
    ];
  }
  const kernels = new Map((roof?.ops ?? []).map((op) => [op.id, op]));
  interface Group {
    words: string;
    count: number;
    seconds: number;
    known: number;
    longer: number; // by the compiler's own model: what fusing them would cost
    asked: number; // of so many
    examples: Decision[];
    seen: Set<number>;
  }
  const groups = new Map<string, Group>();
  const saves = new Map<string, number>(); // a producer's numbers are of all its consumers together
  let fused = 0;
  for (const one of decisions) {
    const longer = one.fused_seconds !== null && one.apart_seconds !== null ? one.fused_seconds - one.apart_seconds : null;
    if (one.verdict === 'fused') {
      fused++;
      if (longer !== null) saves.set(one.producer, -longer);
      continue;
    }
    const words = kind_of(one),
      group = groups.get(words) ?? { words, count: 0, seconds: 0, known: 0, longer: 0, asked: 0, examples: [], seen: new Set<number>() };
    groups.set(words, group);
    group.count++;
    group.examples.push(one);
    if (longer !== null) {
      group.longer += longer;
      group.asked++;
    }
    const kernel = one.producer_id !== null ? kernels.get(one.producer_id) : undefined;
    const time = kernel ? (roof?.profile !== null ? kernel.measured : kernel.seconds) : null;
    if (kernel && time !== null && !group.seen.has(kernel.id)) {
      group.seen.add(kernel.id);
      group.known++;
      group.seconds += time;
    }
  }
  const saved = [...saves.values()].reduce((all, one) => all + one, 0), apart = (one: Decision) => one.apart_seconds ?? -1;
  for (const group of groups.values()) group.examples = group.examples.sort((a, b) => apart(b) - apart(a)).slice(0, 8);
  const list = [...groups.values()].sort((a, b) => b.seconds - a.seconds || b.longer - a.longer || b.count - a.count),
    most = Math.max(1e-300, ...list.map((one) => one.seconds));
  return [
    h(
      'p',
      { class: 'faint' },
      `${plural(fused, 'pair')} fused${saves.size ? `, which by XLA\u2019s cost model saves ${seconds(saved)}` : ''}; ${
        (decisions.length - fused).toLocaleString('en')
      } kept apart. Of those the reasons, sorted by what the producers that are still kernels in the last stage take${
        roof?.profile != null ? ' (measured)' : ' at least'
      }.`,
    ),
    h(
      'div',
      { class: 'bars wordy' },
      ...list.slice(0, 8).map((group) =>
        h(
          'details',
          { class: 'bar-row' },
          h(
            'summary',
            null,
            h('span', { class: 'bar-name' }, `${group.count.toLocaleString('en')} × `, foreign(group.words, 90)),
            bar(group.known ? group.seconds / most : null, null, 'is-least') as unknown as HTMLElement,
            h('span', { class: 'bar-time' }, group.known ? seconds(group.seconds) : 'unknown'),
            h('span', { class: 'bar-share' }),
          ),
          group.asked ? h('p', { class: 'faint' }, `By XLA\u2019s cost model ${group.asked} of them would take ${seconds(group.longer)} more, fused.`) : null,
          h(
            'ul',
            { class: 'ops' },
            ...group.examples.map((one) =>
              h(
                'li',
                null,
                foreign(one.producer, 40),
                one.consumer ? h('span', null, ' → ', foreign(one.consumer, 40)) : null,
                h('span', { class: 'faint' }, ' ', foreign(one.why, 160)),
              )
            ),
          ),
        )
      ),
    ),
    button('All decisions (n)', () => {
      void host.go({ at: { module, state: -1 }, view: 'fusion' });
    }),
  ];
}

/** A card that is filled later; until then it says that it is being asked for. */
export class Card {
  readonly element: HTMLElement;
  private body = h('div', { class: 'card-body', 'aria-busy': 'true' }, h('p', { class: 'faint' }, 'is being computed …'));
  constructor(title: string, name = '') {
    this.element = h('section', { class: 'card ' + name, 'aria-label': title }, h('h2', null, title), this.body);
  }
  /** Takes seconds, in which the engine answers nothing else: by a button. */
  offer(instructions: number, compute: () => void): void {
    this.body.removeAttribute('aria-busy');
    const start = button('Compute', () => {
      this.body.setAttribute('aria-busy', 'true');
      fill(this.body, h('p', { class: 'faint' }, 'is being computed …'));
      compute();
    });
    fill(this.body, h('p', null, start, ` takes seconds: the module has ${instructions.toLocaleString('en')} instructions.`));
  }
  fill(parts: HTMLElement[]): void {
    this.body.removeAttribute('aria-busy');
    fill(this.body, ...parts);
  }
  failed(error: unknown): void {
    this.fill([h('p', null, 'Unknown: ', foreign(String((error as Error)?.message ?? error), 400))]);
  }
}
