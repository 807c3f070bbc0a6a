// The page begins here: which engine there is, what the page carries, and the first view.
import { App } from './app';
import { carried, how_to_get_it, served } from './answers';
import { connectWorker } from './connect';
import { Engine, PageJson } from './protocol';
import { script_interface } from './script_interface';
import { carried_files, File_, from_base64 } from './unpack';
import { Course } from './lessons/view';

function about(files: File_[]): PageJson {
  const file = files.find((one) => one.name === 'page.json');
  const said = file ? JSON.parse(new TextDecoder().decode(file.bytes)) as Partial<PageJson> : {};
  const engine = said.engine === 'server' || said.engine === 'none' ? said.engine : 'inside';
  return {
    version: 1,
    title: String(said.title ?? ''),
    engine,
    notices: Array.isArray(said.notices) ? said.notices.map(String) : [],
    ...(said.lesson !== undefined ? { lesson: String(said.lesson) } : {}),
    engine_older: said.engine_older === true,
  };
}

/** The lessons that the page carries; null where it carries none. */
function course_of(files: File_[], said: PageJson): Course | null {
  const texts = new Map<string, string>(), decoder = new TextDecoder();
  for (const file of files) if (file.name.startsWith('lessons/')) texts.set(file.name.slice('lessons/'.length), decoder.decode(file.bytes));
  return texts.size ? { texts, first: said.lesson ?? '' } : null;
}

const text_of = (id: string) => document.getElementById(id)?.textContent?.trim() ?? '';

async function begin(root: HTMLElement): Promise<App> {
  performance.mark('hlo:open:from');
  document.documentElement.dataset.theme = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  const text = text_of('hlo-data'), ended = (why: string) => shown?.engine_ended(why);
  let shown: App | null = null;
  // The engine is compiled in its worker while the data are unpacked here.
  let early: Engine | null = text_of('hlo-engine') ? connectWorker(await from_base64(text_of('hlo-engine')), text_of('hlo-worker'), ended) : null;
  early?.modules().catch(() => undefined); // said again by the first real question
  let files: File_[] = [], fault: unknown = null;
  try {
    if (text) files = await carried_files(text);
  } catch (error) {
    fault = error;
  }
  const said = about(files);
  const start = async (): Promise<Engine> => {
    if (said.engine === 'server') return served();
    if (said.engine === 'none') return carried(files);
    const ready = early;
    early = null;
    return ready ?? connectWorker(await from_base64(text_of('hlo-engine')), text_of('hlo-worker'), ended);
  };
  const load = async (engine: Engine) => {
    const inside = files.filter((file) => file.name !== 'page.json' && !file.name.startsWith('lessons/'));
    if (said.engine === 'inside' && inside.length) await engine.open(inside);
    return engine;
  };
  const engine = await start();
  const app = shown = new App(engine, said.engine !== 'none', said.engine === 'inside' ? async () => load(await start()) : null, course_of(files, said));
  app.mount(root);
  if (said.engine_older) app.engine_older();
  for (const notice of said.notices.slice(0, 20)) app.notice({ kind: 'note', message: notice });
  if (said.engine === 'none') {
    app.notice({
      kind: 'note',
      message: 'This page was made without the engine: it shows what was recorded; it cannot search, run or change anything.',
      hint: how_to_get_it,
    });
  }
  if (fault) app.notice({ kind: 'error', message: `What this page carries cannot be read: it ${String((fault as Error).message ?? fault)}.` });
  try {
    await load(engine);
    await app.begin();
  } catch (error) {
    app.failed(error);
    await app.begin().catch((again) => app.failed(again));
  }
  performance.measure('hlo:open', 'hlo:open:from');
  return app;
}

const root = document.getElementById('app');
if (root) {
  const started = begin(root);
  (window as unknown as { hloReplay: unknown }).hloReplay = script_interface(started);
  started.catch((error) => {
    root.textContent = `This page could not begin: ${String(error?.message ?? error)}`;
  });
}
