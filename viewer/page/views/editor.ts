// The editor of HLO text: CodeMirror with the colours of the text view.
import CodeMirror, { Editor } from 'codemirror/lib/codemirror.js';
import { Token, tokens } from './text';

let mode_known = false;
function know_mode(): void {
  if (mode_known) return;
  mode_known = true;
  let line = '', known: Token[] = []; // the editor asks for one token after another
  CodeMirror.defineMode('hlo', () => ({
    lineComment: '//',
    token(stream) {
      let at = 0;
      if (stream.string.length > 4000) {
        stream.skipToEnd();
        return null;
      }
      if (line !== stream.string) {
        line = stream.string;
        known = tokens(line);
      }
      for (const token of known) {
        const end = at + token.text.length;
        if (stream.pos < end) {
          stream.pos = end;
          return token.kind ? 'hlo-' + token.kind : null;
        }
        at = end;
      }
      stream.skipToEnd();
      return null;
    },
  }));
}

/** An editor that fills `place`. `label`: for screen readers; `run`: what Ctrl+Enter does. Escape leaves it. */
export function hlo_editor(place: HTMLElement, value: string, label: string, run: () => void): Editor {
  know_mode();
  const editor = CodeMirror(place, {
    lineNumbers: true,
    mode: 'hlo',
    value,
    inputStyle: 'textarea',
    spellcheck: false,
    viewportMargin: 20,
    extraKeys: {
      'Ctrl-Enter': run,
      'Cmd-Enter': run,
      Esc: () => {
        (document.activeElement as HTMLElement | null)?.blur();
      },
      Tab: false,
      'Shift-Tab': false,
    },
  });
  editor.getWrapperElement().querySelector('textarea')?.setAttribute('aria-label', label);
  return editor;
}
