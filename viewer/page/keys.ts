// The keys, in one table: what is listed in help is what is done.
import { h } from './dom';

export interface Key {
  keys: string;
  tells: string;
  group: string;
}

export const keys: Key[] = [
  { group: 'Stages', keys: '← →', tells: 'stage before, next stage' },
  { group: 'Stages', keys: 'Home End', tells: 'first, last stage' },
  { group: 'Stages', keys: 'Space', tells: 'play' },
  { group: 'Stages', keys: '[ ]', tells: 'one rewrite back, forth inside of the pass' },
  { group: 'Stages', keys: ', .', tells: 'module before, next module' },
  { group: 'Graph', keys: '↑ ↓', tells: 'to an operand, to a user' },
  { group: 'Graph', keys: 'e Enter', tells: 'open or fold the group' },
  { group: 'Graph', keys: 'E', tells: 'open all' },
  { group: 'Graph', keys: 'c C', tells: 'next changed box, the one before' },
  { group: 'Graph', keys: 'u', tells: 'to the group around' },
  { group: 'Graph', keys: '+ − 0 z', tells: 'nearer, farther, all of it, to the selection' },
  { group: 'Graph', keys: 'Shift + arrows', tells: 'pan' },
  { group: 'Views', keys: 'o', tells: 'overview' },
  { group: 'Views', keys: 'g', tells: 'graph' },
  { group: 'Views', keys: 't', tells: 'text' },
  { group: 'Views', keys: 'd', tells: 'diff: changes of this stage' },
  { group: 'Views', keys: 'r', tells: 'rewrites of the pass' },
  { group: 'Views', keys: 's', tells: 'side by side' },
  { group: 'Views', keys: 'f', tells: 'follow the op through all stages' },
  { group: 'Views', keys: 'n', tells: 'fusion decisions' },
  { group: 'Views', keys: 'm', tells: 'memory: buffers over time' },
  { group: 'Views', keys: 'y', tells: 'thunks by stream' },
  { group: 'Views', keys: 'l', tells: 'roofline' },
  { group: 'Views', keys: 'b', tells: 'bench: change and run it' },
  { group: 'Lessons', keys: '← →', tells: 'step before, next step' },
  { group: 'Lessons', keys: '1 2 3', tells: 'choose an answer' },
  { group: 'Lessons', keys: 'f k', tells: 'predict: fused, kept apart' },
  { group: 'Lessons', keys: 'Enter', tells: 'next decision' },
  { group: 'Page', keys: '/', tells: 'search' },
  { group: 'Page', keys: 'Esc', tells: 'let go of the selection' },
  { group: 'Page', keys: 'x', tells: 'light or dark' },
  { group: 'Page', keys: '?', tells: 'this help' },
];

export function help_dialog(): HTMLDialogElement {
  const groups = [...new Set(keys.map((key) => key.group))];
  const dialog = h(
    'dialog',
    { class: 'help', 'aria-label': 'Keys and help' },
    h('h2', null, 'Keys'),
    h(
      'div',
      { class: 'columns' },
      ...groups.map((group) =>
        h(
          'section',
          null,
          h('h3', null, group),
          h(
            'dl',
            null,
            ...keys.filter((key) => key.group === group).flatMap((key) => [
              h(
                'dt',
                null,
                ...key.keys.split(' ').map((k) => k === '+' && key.keys.startsWith('Shift') ? ' + ' : h('kbd', null, k)),
              ),
              h('dd', null, key.tells),
            ]),
          ),
        )
      ),
    ),
    h(
      'p',
      null,
      'Drop a dump (a folder, .tar, .tar.gz, .zip) or a module on the page to look at it. Nothing leaves this machine: the page asks no network. The address has what you see; copy it to come back.',
    ),
    h('button', { type: 'button', autofocus: true, onclick: () => dialog.close() }, 'Close'),
  );
  return dialog;
}
