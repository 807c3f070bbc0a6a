// window.hloReplay: what tests and scripts ask of the page (docs/formats.md). Each call resolves when it is drawn.
import type { App } from './app';

export function script_interface(started: Promise<App>): Record<string, unknown> {
  const by_name = async (app: App, name: string) => {
    const id = await app.session.by_name(app.session.place.at, name);
    if (id === null) throw new Error(`no op of the name ${name} in ${app.session.stage_words(app.session.place.at)}`);
    return id;
  };
  return {
    ready: started.then(() => undefined),
    /** Of the module shown: every state, with the pass that made it. */
    stages: async () => {
      const app = await started, module = app.session.place.at.module, rows = await app.session.rows(module);
      const stages: { stage: number; number: number | null; pipeline: string; pass: string; changed: boolean }[] = [];
      for (let stage = 0; stage < (app.session.info(module)?.states ?? 0); stage++) {
        const made = rows.filter((row) => row.state === stage && row.kind !== 'pipeline-start'), row = made.find((one) => one.changed) ?? made[0];
        stages.push({ stage, number: row?.number ?? null, pipeline: row?.pipeline ?? '', pass: row?.pass ?? '', changed: row?.changed ?? false });
      }
      return stages;
    },
    goto: async (stage: number) => {
      const app = await started, states = app.session.info()?.states ?? 0;
      if (!Number.isInteger(stage) || stage < 0 || stage >= states) throw new Error(`no stage ${stage}: there are ${states}`);
      await app.go({ at: { module: app.session.place.at.module, state: stage }, against: null });
    },
    search: async (text: string) => {
      const app = await started;
      app.search_box.value = text;
      await app.search(text);
      return app.searching.hits.map((hit) => hit.name);
    },
    select: async (name: string) => {
      const app = await started;
      await app.select(await by_name(app, name), name.replace(/^%/, ''));
    },
    expand: async (name: string) => {
      const app = await started;
      if (app.session.place.view !== 'graph') await app.go({ view: 'graph' });
      await app.graph.expand(name);
    },
    state: async () => {
      const app = await started, place = app.session.place, drawing = app.graph.canvas.scene?.drawing;
      return {
        module: place.at.module,
        stage: place.at.state,
        view: place.view,
        op: place.name,
        query: place.query,
        against: place.against,
        boxes: drawing?.boxes.key.length ?? 0,
        edges: drawing?.edges.from.length ?? 0,
        folded: drawing?.folded ?? 0,
        camera: { ...app.graph.canvas.camera },
        frames: app.graph.canvas.frames,
        theme: document.documentElement.dataset.theme,
      };
    },
    run: async (passes: string[]) => {
      const app = await started;
      return app.bench.run_passes(passes);
    },
  };
}
