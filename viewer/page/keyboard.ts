// Keys become what they mean. A view is asked first; what it does not take is the page's.
import { Host, View } from './host';
import { Place, ViewName } from './session';

/** What keys lead to. */
interface Keyed extends Host {
  readonly help: HTMLDialogElement;
  readonly search_box: HTMLInputElement;
  readonly scrub: { step(by: number): Promise<boolean>; play(): void };
  readonly rewrites: { ready(place: Place): boolean; show(place: Place, turn: number): Promise<void>; step(by: number): Promise<void> };
  view(): View | undefined;
  show_help(): void;
  switch_theme(): void;
  to_module(by: number): Promise<void>;
}

const to_view: { [key: string]: ViewName } = {
  o: 'overview',
  g: 'graph',
  t: 'text',
  d: 'diff',
  r: 'rewrites',
  s: 'side',
  f: 'follow',
  n: 'fusion',
  m: 'memory',
  y: 'thunks',
  l: 'roofline',
  b: 'bench',
};

export function handle_key(app: Keyed, event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || app.help.open) return;
  const target = event.target as HTMLElement;
  if (target.closest('input, select, textarea, .CodeMirror')) return;
  const on_button = target.closest('button, summary, a') !== null;
  if (on_button && (event.key === 'Enter' || event.key === ' ')) return;
  if (take(app, event)) event.preventDefault();
}

function take(app: Keyed, event: KeyboardEvent): boolean {
  const wait = (work: Promise<unknown>) => {
    work.catch((error) => app.failed(error));
    return true;
  };
  const place = app.session.place;
  const tab = (event.target as HTMLElement).closest('[role=tab]');
  if (tab && (event.key === 'ArrowRight' || event.key === 'ArrowLeft')) {
    const other = (event.key === 'ArrowRight' ? tab.nextElementSibling : tab.previousElementSibling) as HTMLElement | null;
    if (other) {
      other.focus();
      other.click();
    }
    return true;
  }
  if ((app.session.modules.length || place.view === 'lesson') && app.view()?.key?.(event)) return true;
  switch (event.key) {
    case '/':
      app.search_box.focus();
      app.search_box.select();
      return true;
    case '?':
      app.show_help();
      return true;
    case 'x':
      app.switch_theme();
      return true;
    default:
      break;
  }
  if (!app.session.modules.length || place.view === 'lesson') return false;
  switch (event.key) {
    case 'ArrowLeft':
      return wait(app.scrub.step(-1));
    case 'ArrowRight':
      return wait(app.scrub.step(1));
    case 'Home':
      return wait(app.go({ at: { module: place.at.module, state: 0 }, against: null }));
    case 'End':
      return wait(app.go({ at: { module: place.at.module, state: -1 }, against: null }));
    case ' ':
      app.scrub.play();
      return true;
    case '[':
      return wait(rewrite(app, -1));
    case ']':
      return wait(rewrite(app, 1));
    case ',':
      return wait(app.to_module(-1));
    case '.':
      return wait(app.to_module(1));
    case 'Escape':
      return wait(app.select(null, ''));
    default:
      break;
  }
  const view = to_view[event.key];
  return view ? wait(app.go({ view })) : false;
}

/** Steps by rewrites from wherever one is: the list of them is read first. */
async function rewrite(app: Keyed, by: number): Promise<void> {
  if (!app.rewrites.ready(app.session.place)) await app.rewrites.show(app.session.place, app.session.begin());
  await app.rewrites.step(by);
}
