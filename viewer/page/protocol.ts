// What the page asks and the engine answers: the one description of it. The engine (viewer/engine/engine.h) answers as
// WebAssembly in a worker, or as the program itself behind `view --serve`; a page made without an engine carries the
// answers of `Carried` that were made beforehand. A question is one JSON object {method, ...}, its answer one JSON
// object, or {error: {message, hint?}}. Bytes (dropped files, a recording) go beside the JSON, never inside of it.

/** Another number whenever what is below changes. A page refuses an engine of another number (connect.ts), and no page is
 *  made with an engine that was made with another text of this file (viewer/engine/state.cmake). */
export const ProtocolVersion = 2;

/** A state of a module: module m of the session, state s of that module. States are numbered in the order in which
 *  they came; what is edited or run in the page is appended to a module of its own (the bench). */
export interface StateRef {
  module: number;
  state: number;
}

/** An instruction's number, the same in all states of one module in which it is the same instruction. */
export type Id = number;

export interface ModuleInfo {
  module: number;
  name: string;
  number: number;
  function: string;
  source: 'xla' | 'hlo-replay' | 'bench';
  states: number; // 0: its stages are not read yet; any question about it reads them (several modules are open)
  instructions: number; // of the last state
  instructions_first: number; // of the first
  problems: string[];
  pipeline: string;
  origin: StateRef | null; // of what was made in the page: its state 0 is a copy of that one, ids the same
}

/** A row of the timeline: a pass that ran (or a pipeline's start), whether or not it changed anything. */
export interface Row {
  row: number;
  kind: 'input' | 'pipeline-start' | 'pass' | 'step' | 'result';
  pipeline: string;
  pass: string;
  name: string;
  number: number | null; // of its file, as XLA and the command line count: module_0001.m.0041.…; null where it has none
  state: number | null; // that it ends with
  changed: boolean;
  implemented: boolean;
  disabled: boolean;
  microseconds: number | null;
  before: number;
  after: number;
  added: number;
  removed: number;
  modified: number;
  rewrites: number;
}

export type OpClass =
  | 'parameter'
  | 'constant'
  | 'elementwise'
  | 'movement'
  | 'reduction'
  | 'contraction'
  | 'fusion'
  | 'library'
  | 'collective'
  | 'control'
  | 'tuple'
  | 'other';

/** A drawing: absolute positions, in pixels at zoom 1. Arrays of one length, an entry a box; parents stand before
 *  their children. `key` is the same from state to state where the box is: `i17` an instruction, `c3` a computation
 *  drawn in its caller, `s…` a name scope, `r…` a repeated block (found by structure). */
export interface Drawing {
  state: StateRef;
  width: number;
  height: number;
  boxes: {
    key: string[];
    parent: number[];
    x: number[];
    y: number[];
    w: number[];
    h: number[];
    kind: ('op' | 'folded' | 'open')[];
    label: string[]; // name of the op, of the scope, "block of 41 ops"
    detail: string[]; // shape of the op, what a group holds
    cls: OpClass[];
    opcode: string[];
    id: (Id | null)[];
    count: number[]; // instructions inside, 1 for an op
    times: number[]; // how often a repeated block stands here; 1 otherwise
    change: ('same' | 'new' | 'changed' | 'fused' | 'leaves')[]; // against `against`; of groups the strongest inside
  };
  /** `points`: x, y pairs as base64 of 32-bit integers (the lowest byte first) in quarters of a pixel; edge e has the
   *  numbers from start[e] to before start[e + 1]. */
  edges: { from: number[]; to: number[]; points: string; start: number[]; label: string[] };
  folded: number; // instructions that no box of their own shows
}

/** Text of a state, by lines; `id` of the instruction a line defines, null for other lines. */
export interface Text {
  lines: string[];
  ids: (Id | null)[];
  from: number;
  total: number;
}

export interface Hit {
  id: Id;
  name: string;
  opcode: string;
  shape: string;
  computation: string;
  op_name: string;
  line: number;
}

export interface Change {
  kind: 'added' | 'removed' | 'changed' | 'moved' | 'module';
  id: Id | null;
  other: Id | null;
  name: string;
  place: string;
  what: string[];
  before: string;
  after: string;
  count: number;
  rules: string[];
}

/** A rewrite inside of a pass: what the rule did. `state` asks `rewrite_state` for the module behind it. */
export interface Rewrite {
  index: number;
  rule: string;
  text: string;
  ids: { name: string; id: Id | null }[];
}

export interface Op {
  operand_count: number;
  user_count: number; // the lists end at 2,000
  id: Id;
  name: string;
  opcode: string;
  cls: OpClass;
  text: string;
  shape: string;
  layout: string;
  computation: string;
  operands: { id: Id; name: string; shape: string }[];
  users: { id: Id; name: string; shape: string }[];
  calls: { role: string; computation: string; instructions: number }[];
  attributes: { name: string; value: string }[];
  source: { op_name: string; frames: string[] }; // the innermost frame first, `file:line function`
  cost: { flops: number; bytes: number; seconds: number; times: number; bound: string; device: string } | null; // seconds: of one run of it; times: its runs in one call
  history: { state: number; row: number; what: string; rules: string[]; name: string; before: string; after: string }[];
  fusion: { name: string; kind: string; ids: Id[]; why: string[] } | null;
  why_not: string[]; // decisions against joining it, with their numbers
  buffers: string[];
  thunks: string[];
  files: { name: string; kind: 'll' | 'ptx' | 'other'; bytes: number }[];
  expected_seconds: number | null; // of all its runs in one call, by what such kernels reach; null: no kernel, or no figure
  measured: Measured | null; // of the last state, where the page has a profile
}

/** Of all runs of an op in one call of the module, on the device that the page's measured.json is of. */
export interface Measured {
  seconds: number;
  share: number | null;
  turns: number;
  ambiguous_seconds: number;
  begin_seconds: number | null; // since the call's begin
  kernel: {
    name: string;
    registers: number | null;
    static_shared_bytes: number | null;
    dynamic_shared_bytes: number | null;
    grid: number[] | null;
    block: number[] | null;
    occupancy: number | null;
    estimated_occupancy: number | null;
    limiter: string;
  } | null; // that took most; occupancy: by the profiler, estimated: by the data sheet
  chosen: string[]; // by the autotuner
  run: string;
}

export interface Overview { // what `hlo-replay DIR` prints, as parts
  title: string;
  findings: Finding[] | null; // of time first, the largest first; null: nothing looked for them
  lines: { heading: string; rows: { text: string; id: Id | null; module: number | null; state: number | null; source: string }[] }[];
}

/** What a program's author can change. `least_seconds`: what it costs in one call by the bound of its kernels, `share`: of
 *  the bound of the whole call; `bytes`: memory that would be free. null: it is not counted in that. */
export interface Finding {
  kind: string;
  id: Id | null;
  name: string;
  what: string;
  advice: string;
  source: string;
  least_seconds: number | null;
  share: number | null;
  bytes: number | null;
  // What came of the advice where `hlo-replay open --try` was run and the page has its answer; compiled false: `what` says why not.
  tried: {
    compiled: boolean;
    what: string;
    helps: boolean | null;
    seconds_before: number | null;
    seconds_after: number | null;
    allocated_before: number | null;
    allocated_after: number | null;
  } | null;
}

/** Times of one call by a key, what `hlo-replay summary --by` prints. `expected_seconds`, `measured_seconds`: null where there is no
 *  figure, no profile; `expected_between_seconds`: launches, and the call itself; `expected_without`: collectives and calls
 *  of unknown cost, which are not in it. `least_seconds` is without kernels of unknown cost. `ops`: of the row's kernels the slowest. */
export interface Summary {
  by: 'class' | 'line' | 'scope';
  device: string;
  device_known: boolean;
  profile: string | null;
  measured_seconds: number | null;
  between_seconds: number | null;
  expected_seconds: number | null;
  expected_between_seconds: number | null;
  expected_without: number | null;
  why_not_expected: string;
  least_seconds: number;
  sum_seconds: number;
  unknown_calls: number;
  loops_of_unknown_length: number;
  rows: {
    key: string;
    least_seconds: number;
    expected_seconds: number | null;
    measured_seconds: number | null;
    unknown_calls: number;
    flops: number;
    bytes: number;
    kernels: number;
    instructions: number;
    ops: { id: Id; name: string; times: number; least_seconds: number | null; expected_seconds: number | null; measured_seconds: number | null }[];
  }[];
}

export interface Memory {
  peak_bytes: number;
  at: Id | null;
  estimated: boolean; // peak by the dump's own assignment where it has one, `from` says
  curve_peak_bytes: number;
  allocated_bytes: number;
  arguments_bytes: number;
  constants_bytes: number;
  outputs_bytes: number;
  temporaries_bytes: number;
  host_bytes: number;
  from: string;
  notes: string[];
  live: { id: Id | null; name: string; bytes: number; from: number; to: number; kind: 'argument' | 'constant' | 'value' | 'host'; source: string }[]; // from, to: places in the schedule
  too_large: string; // that it does not fit the GPU it was compiled for; empty: it does, or its size is unknown
  peak_lines: { key: string; bytes: number }[]; // alive at the peak, most first; what `hlo-replay memory --by=line` prints
  places: number;
  curve: { place: number; bytes: number }[];
}
export interface Roofline {
  device: string;
  flops_per_s: number;
  matrix_flops_per_s: number;
  bytes_per_s: number;
  seconds: number;
  profile: string | null;
  measured_seconds: number | null;
  between_seconds: number | null; // one call, by a profile
  loops_of_unknown_length: number;
  devices: string[]; // that `device` can name
  ops: {
    kind: string;
    times: number;
    bound: 'memory' | 'compute' | 'launch';
    id: Id;
    name: string;
    flops: number;
    bytes: number;
    seconds: number;
    expected: number | null;
    measured: number | null;
  }[];
} // expected: null where there is no figure, or another device is asked for
export interface Thunks {
  // start, seconds: at the earliest, by bounds; of an async done the wait. async_id: of a start, and of the done that waits for it
  thunks: {
    index: number;
    kind: string;
    id: Id | null;
    name: string;
    stream: string;
    async_id: number | null;
    start: number;
    seconds: number;
    depth: number;
  }[];
  streams: string[]; // main, computation_stream[N], communication_stream[N], unknown
  from: string; // the dump's own file; empty: our thunks, on the streams that XLA's rule gives
  notes: string[]; // what the dump does not say
  estimated: boolean; // the state has no schedule, post order stands in
}
export interface Decision {
  row: number | null;
  verdict: 'fused' | 'declined';
  producer: string;
  consumer: string;
  producer_id: Id | null;
  consumer_id: Id | null;
  why: string;
  fused_seconds: number | null; // by the compiler's own cost model, of the producer with all its consumers; null: not recorded
  apart_seconds: number | null;
}
export interface Links {
  modules: { module: number; name: string }[];
  links: { from: number; result: string; to: number; parameter: string; confidence: string; why: string }[];
}

export interface PassInfo {
  name: string;
  atomic: string;
  pipeline_order: number;
  implemented: boolean;
  options: { name: string; default: string; help: string }[];
  help: string;
}
export interface RunResult {
  at: StateRef;
  rows: Row[];
  refused: string[];
}
export interface Values {
  ran: boolean;
  ms: number;
  seed: number;
  values: {
    id: Id;
    shape: string;
    text: string;
    min: number | null;
    max: number | null;
    mean: number | null;
    nan: number;
    inf: number;
    elements: number;
    times: number;
  }[];
  note: string;
} // of each node the value that it had last; times: how often it ran; note: where the first NaN was made

/** What went wrong. Of texts that cannot be read: where the first fault is, and `text` with all of them. */
export interface EngineError {
  message: string;
  hint?: string;
  line?: number;
  column?: number;
  text?: string;
}

/** What the engine answers. Every method may fail with an EngineError. Arguments that a method does not take are refused;
 *  null is "not given". */
export interface Engine {
  open(files: { name: string; bytes: Uint8Array }[]): Promise<{ modules: ModuleInfo[] }>; // a recording, a dump, modules; a .tar or .zip is unpacked by the page
  modules(): Promise<{ modules: ModuleInfo[] }>;
  rows(q: { module: number }): Promise<{ rows: Row[] }>;
  overview(q?: { module?: number }): Promise<Overview>;
  summary(q: { at: StateRef; by: 'class' | 'line' | 'scope' }): Promise<Summary>;
  /** `open`: keys of open groups, null for what is best at first sight; `all` opens everything. `within`: one group by itself. */
  drawing(q: { at: StateRef; open: string[] | null; all?: boolean; against?: StateRef | null; within?: string | null }): Promise<Drawing>;
  svg(q: { at: StateRef; open: string[] | null; all?: boolean; against?: StateRef | null; within?: string | null }): Promise<{ svg: string }>;
  /** `full`: large constants, too; what an edit needs. Without it they are `{...}`. */
  text(q: { at: StateRef; from?: number; lines?: number; full?: boolean }): Promise<Text>;
  /** Words of the query: name parts, `op:fusion`, `kind:kLoop`, `shape:f32[8`, `name:…`, `scope:…`, `attr:…`, `bytes>1M` (of its result), `flops>1G`, `user>3`,
   *  `in:computation`, `id:17`; all must hold; `-` before one negates it; quotes keep blanks; < <= = >= > and thousands K M G T. */
  search(q: { at: StateRef; query: string; limit?: number }): Promise<{ hits: Hit[]; total: number }>;
  /** Where it lives in that state, which keys to open to see it. */
  locate(q: { at: StateRef; id: Id }): Promise<{ keys: string[] }>;
  op(q: { at: StateRef; id: Id }): Promise<Op>;
  diff(q: { a: StateRef; b: StateRef }): Promise<{ same: boolean; changes: Change[]; note: string }>;
  /** What an instruction is in another state of the same module: itself, or its heirs; null: unknown. */
  follow(q: { at: StateRef; id: Id; to: number }): Promise<{ ids: Id[] | null }>;
  rewrites(q: { module: number; row: number }): Promise<{ rewrites: Rewrite[]; atomic: string }>;
  rewrite_state(q: { module: number; row: number; count: number }): Promise<{ at: StateRef }>; // behind so many rewrites
  memory(q: { at: StateRef }): Promise<Memory>;
  roofline(q: { at: StateRef; device?: string }): Promise<Roofline>;
  thunks(q: { at: StateRef }): Promise<Thunks>;
  decisions(q: { module: number; row?: number }): Promise<{ decisions: Decision[] }>;
  links(): Promise<Links>;
  file(q: { module: number; name: string }): Promise<{ text: string }>;
  // Do
  passes(): Promise<{ passes: PassInfo[]; pipelines: { name: string; rows: { pipeline: string; pass: string }[] }[] }>;
  /** A new bench module. `at`: the state whose text it was; names tell what stays, state 0 is that one and 1 the edited one. */
  edit(q: { text: string; name?: string; at?: StateRef | null }): Promise<{ at: StateRef }>;
  /** Passes by name, or a pipeline's rest from row `from`; `off`: passes that are left out; `fuel`: pass → rewrites;
   *  `options`: `pass.option` or `option` → value. Goes on in `at`'s module where that is a bench and `at` its last state. */
  run(
    q: { at: StateRef; passes?: string[]; pipeline?: string; from?: number; off?: string[]; options?: Record<string, string>; fuel?: Record<string, number> },
  ): Promise<RunResult>;
  /** `inputs`: literals, one a parameter, in HLO's syntax; `fill`: values for elided constants, which are refused without. */
  evaluate(q: { at: StateRef; seed?: number; inputs?: string; fill?: 'random' | 'zeros' }): Promise<Values>;
  compare(
    q: { a: StateRef; b: StateRef; seed?: number; inputs?: string; fill?: 'random' | 'zeros' },
  ): Promise<{ equal: boolean; text: string; first: { id: Id | null; name: string; text: string } | null }>;
  /** States held against state 0; then the rewrites of the guilty pass. `at`: the state behind the guilty rewrite. `first`: the first
   *  instruction that has another value, in the state `first.at`, and what it is made of there (`after`) and in the state before it
   *  (`before`), back to where values agree; itself first.
   *  `file`: the recording's file that holds the program, if it does. */
  bisect(
    q: { module: number; seed?: number; inputs?: string; fill?: 'random' | 'zeros' },
  ): Promise<
    {
      found: boolean;
      state: number | null;
      at?: StateRef;
      row: number | null;
      rewrite: number | null;
      rule: string;
      id: Id | null;
      source: string;
      text: string;
      first: { at: StateRef; id: Id | null; name: string; text: string; source: string; file: string; before: Id[]; after: Id[] } | null;
    }
  >;
}

/** Methods whose answers a page without an engine can carry. */
export const Carried = [
  'modules',
  'rows',
  'overview',
  'summary',
  'drawing',
  'text',
  'diff',
  'memory',
  'roofline',
  'thunks',
  'decisions',
  'links',
  'file',
] as const;

/** `page.json` of the archive that a page carries (hlo-data: base64 of a gzipped ustar archive, viewer/page_file.h). The
 *  archive's other files are what `open` takes, by their names; none in an empty bench. `engine`: hlo-engine and
 *  hlo-worker of the page hold it (inside); the program that serves the page (server: POST ./ask with a question, POST
 *  ./put?name=NAME with a file's bytes before `open`); none: `answers.json` lists questions, and `answers/N.json` is what
 *  question N is answered by. A listed question is its JSON with members by name and without those that are null or
 *  undefined: {"at":{"module":0,"state":3},"from":0,"lines":2000,"method":"text"}. `lesson`: of a page with lessons (files
 *  lessons/N_NAME.md, docs/formats.md): the one it opens with; '' lists them. */
export interface PageJson {
  version: 1;
  title: string;
  engine: 'inside' | 'server' | 'none';
  notices: string[];
  lesson?: string;
  engine_older?: boolean;
}
