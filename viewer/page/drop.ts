// Files that are dropped on the page, or chosen: unpacked here, put into the engine, shown.
import { how_to_get_it } from './answers';
import { h } from './dom';
import { Host } from './host';
import { chosen, dropped, File_, UnpackError } from './unpack';

/** A page that takes other files in the place of what is open; `shows`: it goes there. */
export interface Opener extends Host {
  open(files: File_[], shows: boolean): Promise<void>;
}

async function take(host: Opener, files: Promise<File_[]>): Promise<void> {
  try {
    const all = await files;
    if (!all.length) {
      host.notice({ kind: 'note', message: 'There is no file in what was dropped.' });
      return;
    }
    if (!host.session.can_do) {
      host.notice({ kind: 'error', message: 'This page was made without the engine and cannot read files.', hint: how_to_get_it });
      return;
    }
    await host.open(all, true);
  } catch (error) {
    if (error instanceof UnpackError) host.notice({ kind: 'error', message: 'What was dropped ' + error.message + '.' });
    else host.failed(error);
  }
}

export function accept_drops(host: Opener): void {
  const veil = h('div', { class: 'veil', hidden: true }, h('div', null, 'Drop a dump folder, .tar, .tar.gz, .zip or modules. Nothing is uploaded.'));
  document.body.append(veil);
  let inside = 0;
  const files = (event: DragEvent) => Array.from(event.dataTransfer?.types ?? []).includes('Files');
  document.addEventListener('dragenter', (event) => {
    if (files(event)) {
      inside++;
      veil.hidden = false;
      event.preventDefault();
    }
  });
  document.addEventListener('dragover', (event) => {
    if (files(event)) event.preventDefault();
  });
  document.addEventListener('dragleave', (event) => {
    if (files(event) && --inside <= 0) {
      inside = 0;
      veil.hidden = true;
    }
  });
  document.addEventListener('drop', (event) => {
    if (!files(event)) return;
    event.preventDefault();
    inside = 0;
    veil.hidden = true;
    if (event.dataTransfer) void take(host, dropped(event.dataTransfer));
  });
}

export function choose_files(host: Opener): void {
  const input = h('input', {
    type: 'file',
    multiple: true,
    onchange: () => {
      if (input.files) void take(host, chosen(input.files));
    },
  });
  input.click();
}
