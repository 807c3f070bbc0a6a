// Elements, and the only way in which text comes into them: by textContent. Whatever the engine says (names, metadata,
// file names) may hold markup, right-to-left marks or a megabyte; here it becomes plain, isolated and short.

type Child = Node | string | number | null | undefined | false;
type Handlers = { [name: string]: unknown };

/** An element with a tag, properties and children. `class` and names with a dash become attributes, `on…` listeners,
 *  `data` a map of data attributes; strings among the children become text nodes, never markup. */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props?: Handlers | null, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value as EventListener);
    else if (name === 'class') element.className = value as string;
    else if (name === 'data') Object.assign(element.dataset, value);
    else if (name.includes('-') || name === 'role' || name === 'for' || name === 'list') element.setAttribute(name, String(value));
    else (element as unknown as Handlers)[name] = value;
  }
  add(element, ...children);
  return element;
}

export function add(element: Element, ...children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(typeof child === 'number' ? String(child) : child);
  }
}

export function fill(element: Element, ...children: Child[]): void {
  element.textContent = '';
  add(element, ...children);
}

export const longest_text = 4000; // characters of one string that are ever put into the page

/** Shortened in its middle: of a name, the end tells as much as the start. */
export function shorten(text: string, length = 80): string {
  if (text.length <= length) return text;
  const tail = Math.floor((length - 1) / 3);
  return text.slice(0, length - 1 - tail) + '…' + text.slice(text.length - tail);
}

// deno-lint-ignore no-control-regex -- they are what is looked for
const marks = /[\u0000-\u0008\u000b-\u001f\u007f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;

/** Marks that would turn around or hide the text around them are shown as their numbers. */
export function visible(text: string): string {
  return text.replace(marks, (c) => '⟨' + c.charCodeAt(0).toString(16).padStart(4, '0') + '⟩');
}

/** A foreign string: isolated in its direction, its marks visible, shortened, the whole of it (to a limit) as title. */
export function foreign(text: string, length = 80, name = ''): HTMLElement {
  const shown = visible(shorten(text, length));
  const element = h('bdi', { class: name || null }, shown);
  if (shown !== text) element.title = visible(shorten(text, longest_text));
  return element;
}

export function button(label: string, action: (event: Event) => void, props: Handlers = {}): HTMLButtonElement {
  return h('button', { type: 'button', onclick: action, ...props }, label);
}

/** A link inside of the page: does by click what its address says. */
export function link(child: Child, action: (event: MouseEvent) => void, props: Handlers = {}): HTMLButtonElement {
  return h('button', { type: 'button', class: 'link', onclick: action, ...props }, child);
}

export function section(title: string, open: boolean, ...children: Child[]): HTMLDetailsElement {
  return h('details', { class: 'section', open }, h('summary', null, title), ...children);
}

const svg_space = 'http://www.w3.org/2000/svg';

export function s(tag: string, attributes: Record<string, string | number>, ...children: (Node | string)[]): SVGElement {
  const element = document.createElementNS(svg_space, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element as SVGElement;
}

export function bytes(n: number): string {
  if (!isFinite(n)) return '—';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let at = 0;
  while (n >= 1024 && at + 1 < units.length) {
    n /= 1024;
    at++;
  }
  return (at && n < 100 ? n.toFixed(1) : Math.round(n)) + ' ' + units[at];
}

export function seconds(n: number | null): string {
  if (n === null || !isFinite(n)) return '—';
  if (n === 0) return '0';
  for (const [unit, name] of [[1, 's'], [1e-3, 'ms'], [1e-6, 'µs'], [1e-9, 'ns'], [1e-12, 'ps']] as [number, string][]) {
    if (Math.abs(n) >= unit) return (n / unit).toPrecision(3) + ' ' + name;
  }
  return n.toExponential(1) + ' s';
}

export function amount(n: number): string {
  if (!isFinite(n)) return '—';
  for (const [unit, name] of [[1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']] as [number, string][]) {
    if (Math.abs(n) >= unit) return (n / unit).toPrecision(3) + ' ' + name;
  }
  return String(Math.round(n * 100) / 100);
}

export function plural(n: number, one: string, many = one + 's'): string {
  return n.toLocaleString('en') + ' ' + (n === 1 ? one : many);
}

/** Saves a file from the page; nothing leaves the machine. */
export function save(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  const anchor = h('a', { href: address, download: name });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

/** A path of links, innermost last; a long one is cut in its middle. */
export function bdi_path(place: Element, path: { text: string; run: () => void }[]): void {
  const shown = path.length > 6 ? [...path.slice(0, 2), null, ...path.slice(-3)] : path;
  shown.forEach((entry, i) => {
    if (i) add(place, h('span', { class: 'faint', 'aria-hidden': 'true' }, ' › '));
    add(place, entry ? link(foreign(entry.text, 36), entry.run) : '…');
  });
}
