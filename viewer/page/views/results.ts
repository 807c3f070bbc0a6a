// What was computed: values at every node with NaNs marked, and the rewrite that changed what a module computes.
import { Engine, StateRef, Values } from '../protocol';
import { fill, foreign, h, link, plural } from '../dom';
import { Host } from '../host';

function short(n: number | null): string {
  return n === null ? '' : Number(n.toPrecision(6)).toString();
}

export async function names_of(host: Host, at: StateRef, ids: number[]): Promise<Map<number, string>> {
  const found = new Map<number, string>();
  for (const id of ids) {
    const op = await host.engine.op({ at, id }).catch(() => null);
    if (op) found.set(id, op.name);
  }
  return found;
}

export function show_values(host: Host, place: HTMLElement, at: StateRef, values: Values): void {
  if (!values.ran) {
    fill(place, h('h3', { class: 'warn' }, 'Not run'), h('p', null, foreign(values.note, 1000)));
    return;
  }
  const bad = values.values.filter((v) => v.nan || v.inf), shown = [...bad, ...values.values.filter((v) => !v.nan && !v.inf)].slice(0, 300);
  host.session.marked = { at, ids: bad.map((v) => v.id) };
  const cells = new Map<number, HTMLElement>();
  fill(
    place,
    h('h3', null, `${plural(values.values.length, 'value')} in ${values.ms.toFixed(1)} ms`),
    values.note ? h('p', { class: 'faint' }, foreign(values.note, 600)) : null,
    bad.length ? h('p', { class: 'warn' }, `${plural(bad.length, 'value')} with NaN or infinity, first here and framed in the graph`) : null,
    h(
      'table',
      { class: 'table' },
      h('thead', null, h('tr', null, ...['op', 'shape', 'least', 'most', 'mean', 'NaN', 'inf', 'values'].map((t) => h('th', { scope: 'col' }, t)))),
      h(
        'tbody',
        null,
        ...shown.map((v) => {
          const cell = h(
            'td',
            null,
            link(`#${v.id}`, () => {
              void host.select(v.id, cell.textContent ?? '', { view: 'graph' });
            }),
          );
          cells.set(v.id, cell);
          return h(
            'tr',
            { class: v.nan ? 'nan' : v.inf ? 'inf' : null },
            cell,
            h('td', null, foreign(v.shape, 40)),
            h('td', { class: 'n' }, short(v.min)),
            h('td', { class: 'n' }, short(v.max)),
            h('td', { class: 'n' }, short(v.mean)),
            h('td', { class: 'n' }, v.nan || ''),
            h('td', { class: 'n' }, v.inf || ''),
            h('td', null, foreign(v.text, 100)),
          );
        }),
      ),
    ),
  );
  void names_of(host, at, shown.slice(0, 300).map((v) => v.id)).then((names) => {
    for (const [id, name] of names) {
      const cell = cells.get(id);
      if (cell) {
        fill(
          cell,
          link(foreign(name, 50), () => {
            void host.select(id, name, { view: 'graph' });
          }),
        );
      }
    }
  });
}

export function show_bisect(host: Host, place: HTMLElement, module: number, found: Awaited<ReturnType<Engine['bisect']>>): void {
  const { id } = found;
  fill(
    place,
    h('h3', { class: found.found ? 'warn' : 'good' }, found.found ? 'Here it goes wrong' : 'No rewrite changes what it computes'),
    h('p', null, foreign(found.text, 3000)),
    found.rule ? h('p', null, 'rule ', foreign(found.rule, 100, 'rule'), found.rewrite !== null ? ` (rewrite ${found.rewrite})` : '') : null,
    found.source ? h('p', { class: 'source' }, foreign(found.source, 300)) : null,
  );
  const at = found.at ?? (found.state !== null ? { module, state: found.state } : null);
  if (!found.found || !at) return;
  place.append(h('button', {
    type: 'button',
    class: 'primary',
    onclick: () => {
      host.session.load().then(() => host.go({ at, op: id, name: '', view: 'graph', open: null, all: false, against: null })).catch((error) =>
        host.failed(error)
      );
    },
  }, 'Show it in the graph'));
}
