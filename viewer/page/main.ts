// The page begins here: which engine there is, what the page carries, and the first view.
import { App } from './app';
import { carried, how_to_get_it, served } from './answers';
import { connect } from './connect';
import { Engine } from './protocol';
import { script_interface } from './script_interface';
import { carried_files, File_ } from './unpack';

interface About { engine: 'inside' | 'server' | 'none'; notices: string[] }

function about(files: File_[]): About {
  const file = files.find(one => one.name === 'page.json');
  const said = file ? JSON.parse(new TextDecoder().decode(file.bytes)) : {};
  return { engine: said.engine === 'server' || said.engine === 'none' ? said.engine : 'inside', notices: Array.isArray(said.notices) ? said.notices.map(String) : [] };
}

async function begin(root: HTMLElement): Promise<App> {
  performance.mark('hlo:open:from');
  document.documentElement.dataset.theme = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  const text = document.getElementById('hlo-data')?.textContent?.trim() ?? '';
  let files: File_[] = [], fault: unknown = null;
  try { if (text) files = await carried_files(text); } catch (error) { fault = error; }
  const said = about(files);
  const start: () => Promise<Engine> = async () => said.engine === 'server' ? served() : said.engine === 'none' ? carried(files) : connect();
  const load = async (engine: Engine) => {
    const inside = files.filter(file => file.name !== 'page.json');
    if (said.engine === 'inside' && inside.length) await engine.open(inside);
    return engine;
  };
  const engine = await start();
  const app = new App(engine, said.engine !== 'none', said.engine === 'inside' ? async () => load(await start()) : null);
  app.mount(root);
  for (const notice of said.notices.slice(0, 20)) app.notice({ kind: 'note', message: notice });
  if (said.engine === 'none') app.notice({ kind: 'note', message: 'This page was made without the engine: it shows what was recorded; it cannot search, run or change anything.', hint: how_to_get_it });
  if (fault) app.notice({ kind: 'error', message: `What this page carries cannot be read: it ${String((fault as Error).message ?? fault)}.` });
  try {
    await load(engine);
    await app.begin();
  } catch (error) { app.failed(error); await app.begin().catch(again => app.failed(again)); }
  performance.measure('hlo:open', 'hlo:open:from');
  return app;
}

const root = document.getElementById('app');
if (root) {
  const started = begin(root);
  (window as unknown as { hloReplay: unknown }).hloReplay = script_interface(started);
  started.catch(error => { root.textContent = `This page could not begin: ${String(error?.message ?? error)}`; });
}
