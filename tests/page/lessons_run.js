// Every lesson of a folder against the engine as native code, by the page's own reader and judge: node BUNDLE ENGINE_ASK
// FOLDER. Prints a line a lesson; a line `fault: …` for what a reader would stumble over, and ends with 1 then.
import { spawn } from 'child_process';
import * as fs from 'fs';
import * as path from 'path';
import * as readline from 'readline';
import { Workshop } from '../../viewer/page/lessons/check';
import { read_lesson } from '../../viewer/page/lessons/lesson';
import { read_decisions } from '../../viewer/page/lessons/predict';

function native(program) {
  const child = spawn(program, { stdio: ['pipe', 'pipe', 'inherit'] }), waiting = [];
  readline.createInterface({ input: child.stdout }).on('line', line => {
    const answer = JSON.parse(line.replace(/^\S+ \S+ /, '')), { resolve, reject } = waiting.shift();
    if (answer.error) reject(Object.assign(new Error(answer.error.message), answer.error)); else resolve(answer);
  });
  child.on('exit', () => { for (const one of waiting) one.reject(new Error('the engine ended')); });
  const ask = (method, question) => new Promise((resolve, reject) => { waiting.push({ resolve, reject }); child.stdin.write(JSON.stringify({ method, ...question }) + '\n'); });
  return { engine: new Proxy({}, { get: (_, method) => question => ask(method, question) }), end: () => child.stdin.end() };
}

const faults = [];
const fault = (where, what) => faults.push(`fault: ${where}: ${what}`);

async function question_of(step, shop, where) {
  const question = step.question;
  if (question.kind === 'edit') {
    const start = shop.lesson.modules.get(question.module) ?? await shop.text((await shop.module(question.module)).at);
    const judged = await shop.judge(question, question.solution);
    if (!judged.right) fault(where, `the solution is judged wrong: ${judged.tells} ${judged.found}`);
    if ((await shop.judge(question, start)).right) fault(where, 'right without a change');
    for (const one of question.wrong) {
      const verdict = await shop.judge(question, one.text);
      if (verdict.right) fault(where, `a wrong text is judged right: ${one.tells}`);
      else if (verdict.tells !== one.tells) fault(where, `a wrong text is told "${verdict.tells}", not "${one.tells}"`);
    }
    return;
  }
  const value = await shop.value(question.answer);
  if (question.kind === 'choose') {
    if (!question.options.some(one => one.value === value)) fault(where, `no option is ${value}, which the engine says`);
    for (const one of question.options) {
      const verdict = await shop.judge(question, one.value);
      if (verdict.right !== (one.value === value)) fault(where, `option ${one.value} is misjudged`);
      if (!verdict.tells || (!verdict.right && !verdict.found)) fault(where, `option ${one.value} is not told why`);
    }
  } else {
    if (!Number.isFinite(Number(value))) fault(where, `the engine says no number: ${value}`);
    if (!(await shop.judge(question, value)).right) fault(where, `${value} is misjudged`);
    for (const one of question.wrong) {
      const verdict = await shop.judge(question, one.text);
      if (verdict.right) fault(where, `${one.text} is right, and listed as wrong`);
      else if (!verdict.tells || !verdict.found) fault(where, `${one.text} is not told why`);
    }
  }
}

async function main() {
  const [program, folder] = process.argv.slice(2), { engine, end } = native(program);
  for (const file of fs.readdirSync(folder).filter(name => name.endsWith('.md')).sort()) {
    let lesson;
    try { lesson = read_lesson(file.replace(/^\d+_|\.md$/g, ''), fs.readFileSync(path.join(folder, file), 'utf8')); } catch (error) { fault(file, error.message); continue; }
    const shop = new Workshop(engine, lesson), counts = { steps: lesson.steps.length, modules: 0, questions: 0 };
    const attempt = async (where, task) => { try { await task(); } catch (error) { fault(where, error.message); } };
    for (const name of [...lesson.modules.keys(), ...lesson.runs.map(run => run.name)]) {
      counts.modules++;
      await attempt(`${file}, module ${name}`, async () => {
        const made = await shop.module(name);
        if (made.rows.length && !made.rows.some(row => row.changed)) fault(`${file}, module ${name}`, 'its passes change nothing');
      });
    }
    for (const [i, step] of lesson.steps.entries()) {
      const where = `${file}, step ${i + 1} (${step.title})`;
      for (const name of step.table) await attempt(where, async () => { if (!(await shop.kernels((await shop.module(name)).at)).length) fault(where, `no kernels in ${name}`); });
      for (const name of step.thunks) await attempt(where, async () => { if (!(await shop.thunks((await shop.module(name)).at)).length) fault(where, `no thunks in ${name}`); });
      if (step.values) await attempt(where, async () => { if (!(await engine.evaluate({ at: (await shop.module(step.values)).at })).ran) fault(where, `${step.values} does not run`); });
      if (step.question) { counts.questions++; await attempt(where, () => question_of(step, shop, where)); }
    }
    console.log(`${lesson.name}: ${counts.steps} steps, ${counts.modules} modules, ${counts.questions} questions`);
  }
  const decisions = path.join(folder, 'decisions.json');
  if (fs.existsSync(decisions)) for (const [i, one] of read_decisions(fs.readFileSync(decisions, 'utf8')).entries()) {
    const where = `decision ${i + 1}`;
    try {
      const { at } = await engine.edit({ text: one.text, name: 'decision' });
      for (const name of [one.producer, ...one.consumers])
        if (!(await engine.search({ at, query: `name:${name}`, limit: 100 })).hits.some(hit => hit.name === name)) fault(where, `there is no ${name}`);
      if (one.verdict !== 'fused' && one.verdict !== 'declined') fault(where, `no verdict: ${one.verdict}`);
      if (one.us_fused !== null ? (one.us_fused < one.us_unfused) !== (one.verdict === 'fused') : !one.reason) fault(where, 'nothing tells why');
    } catch (error) { fault(where, error.message); }
  }
  end();
  for (const one of faults) console.log(one);
  process.exitCode = faults.length ? 1 : 0;
}
main().catch(error => { console.error(error); process.exitCode = 2; });
