// Right, while no op is chosen: what the pass behind this stage did, at a glance, and in the last stage what is slow.
import { Change, Roofline } from './protocol';
import { add, button, fill, foreign, h, link, plural, seconds } from './dom';
import { Host } from './host';
import { Place } from './session';

const wait = 250; // ms that a stage is looked at before its changes are asked for: who steps on is not held up
const most = 8; // entries of a list

/** `fusion` of `%fusion.3 = f32[8]{0} fusion(...)`; empty where it is no instruction. */
function opcode_of(text: string): string {
  return text.match(/ = (?:\([^=]*?\)|\S+) ([a-z][\w-]*)\(/)?.[1] ?? '';
}

/** How often each word stands there; a change may stand for many like ones. */
function counted(changes: Change[], words: (change: Change) => string[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const change of changes) for (const word of words(change)) if (word) counts.set(word, (counts.get(word) ?? 0) + Math.max(1, change.count));
  return [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
}

function tally(title: string, name: string, list: [string, number][]): HTMLElement | null {
  if (!list.length) return null;
  return h(
    'p',
    { class: 'tally' },
    h('span', { class: name }, title, ' '),
    ...list.slice(0, most).flatMap(([word, n], k) => [k ? ', ' : '', h('b', null, n), ' ', foreign(word, 60)]),
    list.length > most ? ', …' : '',
  );
}

export async function show_stage(host: Host, place: Place, element: HTMLElement, current: () => boolean): Promise<void> {
  const session = host.session, row = await session.row_of(place.at).catch(() => null);
  if (!current()) return;
  const body = h('div', { class: 'stage-told' });
  fill(
    element,
    h('div', { class: 'pane-head' }, h('h2', null, foreign(row?.pass || row?.name || row?.kind || session.stage_words(place.at), 60))),
    body,
    h(
      'p',
      { class: 'faint' },
      'Click an op to see its shape, operands, source line, history, fusion, buffers and cost. Double click opens a group. Press ',
      h('kbd', null, '?'),
      ' for all keys, ',
      h('kbd', null, '/'),
      ' to search.',
    ),
  );
  if (row?.pipeline) add(body, h('p', { class: 'faint' }, 'of ', foreign(row.pipeline, 80)));
  if (row && row.kind !== 'input') {
    add(
      body,
      h(
        'p',
        null,
        `${row.before.toLocaleString('en')} → ${row.after.toLocaleString('en')} instructions`,
        row.rewrites ? `, ${plural(row.rewrites, 'rewrite')}` : '',
        row.microseconds !== null ? `, ${seconds(row.microseconds / 1e6)}` : '',
      ),
    );
  }
  if (!session.can_do) return;
  await new Promise((done) => setTimeout(done, wait));
  const base = session.base(place), last = place.at.state + 1 === (session.info(place.at.module)?.states ?? 0);
  if (!current()) return;
  if (base) {
    const { changes, note } = await session.engine.diff({ a: base, b: place.at });
    if (!current()) return;
    add(body, changes_told(host, place, changes, note));
  }
  if (last && current()) {
    const slow = slowest(host, await session.engine.roofline({ at: place.at }));
    if (current() && slow) add(body, slow);
  }
}

function changes_told(host: Host, place: Place, changes: Change[], note: string): HTMLElement {
  const of = (kind: Change['kind']) => changes.filter((change) => change.kind === kind);
  const turned = (change: Change) => {
    const from = opcode_of(change.before), to = opcode_of(change.after);
    return [from === to ? from : `${from} → ${to}`];
  };
  const jump = (change: Change) =>
    link(foreign(change.name, 40), () => {
      void host.select(change.id, change.name, { at: place.at });
    });
  const weighty = (change: Change) =>
    /^(fusion|custom-call|dot|convolution|while|conditional|call|.*-(start|reduce|gather))$/.test(opcode_of(change.after)) ? 0 : 1;
  const shown = [...of('added'), ...of('changed')].filter((change) => change.id !== null).sort((a, b) => weighty(a) - weighty(b)).slice(0, most);
  return h(
    'div',
    null,
    tally('new', 'mark-new', counted(of('added'), (change) => [opcode_of(change.after)])),
    tally('gone', 'mark-gone', counted(of('removed'), (change) => [opcode_of(change.before)])),
    tally('changed', 'mark-changed', counted(of('changed'), turned)),
    tally('rules', 'faint', counted(changes, (change) => change.rules)),
    shown.length
      ? h(
        'ul',
        { class: 'ops' },
        ...shown.map((change) =>
          h('li', null, h('span', { class: change.kind === 'added' ? 'mark-new' : 'mark-changed' }, change.kind === 'added' ? '+ ' : '~ '), jump(change))
        ),
      )
      : null,
    changes.length
      ? button('All changes (d)', () => {
        void host.go({ view: 'diff' });
      })
      : h('p', { class: 'faint' }, foreign(note ? note[0].toUpperCase() + note.slice(1) + '.' : 'No instruction differs from the stage before.', 300)),
  );
}

function slowest(host: Host, told: Roofline): HTMLElement | null {
  if (!told.ops.length || !(told.seconds > 0)) return null;
  const time = (op: Roofline['ops'][0]) => told.profile !== null ? op.measured ?? 0 : op.seconds; // of all its times
  const ops = [...told.ops].sort((a, b) => time(b) - time(a)).slice(0, most);
  const all = (told.measured_seconds ?? 0) + (told.between_seconds ?? 0);
  const share = (op: Roofline['ops'][0]) => 100 * (all > 0 ? (op.measured ?? 0) / all : op.seconds / told.seconds);
  return h(
    'div',
    null,
    h(
      'h3',
      null,
      'Slowest ',
      h(
        'span',
        { class: 'faint' },
        told.profile !== null && told.measured_seconds !== null
          ? `measured: ${seconds(told.measured_seconds)} in all${told.between_seconds ? `, ${seconds(told.between_seconds)} between them` : ''}`
          : `estimated for ${told.device}, ${seconds(told.seconds)} in all`,
      ),
    ),
    h(
      'ol',
      { class: 'slow' },
      ...ops.map((op) =>
        h(
          'li',
          null,
          link(foreign(op.name, 40), () => {
            void host.select(op.id, op.name);
          }),
          h(
            'span',
            { class: 'faint' },
            ` ${seconds(time(op))}, ${share(op).toFixed(1)} %${op.times > 1 ? `, ${op.times} times` : ''}, ${
              told.profile !== null ? 'measured' : op.bound + '-bound'
            }`,
          ),
        )
      ),
    ),
  );
}
