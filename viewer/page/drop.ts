// Files that are dropped on the page, or chosen: unpacked here, put into the engine, shown.
import type { App } from './app';
import { how_to_get_it } from './answers';
import { h } from './dom';
import { chosen, dropped, File_, UnpackError } from './unpack';

async function take(app: App, files: Promise<File_[]>): Promise<void> {
  try {
    const all = await files;
    if (!all.length) { app.notice({ kind: 'note', message: 'There is no file in what was dropped.' }); return; }
    if (!app.session.can_do) { app.notice({ kind: 'error', message: 'This page was made without the engine and cannot read files.', hint: how_to_get_it }); return; }
    await app.open(all, true);
  } catch (error) {
    if (error instanceof UnpackError) app.notice({ kind: 'error', message: 'What was dropped ' + error.message + '.' });
    else app.failed(error);
  }
}

export function accept_drops(app: App): void {
  const veil = h('div', { class: 'veil', hidden: true }, h('div', null, 'Drop a dump folder, .tar, .tar.gz, .zip or modules. Nothing is uploaded.'));
  document.body.append(veil);
  let inside = 0;
  const files = (event: DragEvent) => Array.from(event.dataTransfer?.types ?? []).includes('Files');
  document.addEventListener('dragenter', event => { if (files(event)) { inside++; veil.hidden = false; event.preventDefault(); } });
  document.addEventListener('dragover', event => { if (files(event)) event.preventDefault(); });
  document.addEventListener('dragleave', event => { if (files(event) && --inside <= 0) { inside = 0; veil.hidden = true; } });
  document.addEventListener('drop', event => {
    if (!files(event)) return;
    event.preventDefault();
    inside = 0; veil.hidden = true;
    if (event.dataTransfer) void take(app, dropped(event.dataTransfer));
  });
}

export function choose_files(app: App): void {
  const input = h('input', { type: 'file', multiple: true, onchange: () => { if (input.files) void take(app, chosen(input.files)); } });
  input.click();
}
