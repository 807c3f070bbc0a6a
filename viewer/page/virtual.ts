// A list of any length of which only the rows in sight are elements.
import { h } from './dom';

export interface VirtualList {
  element: HTMLElement;
  set(count: number): void;
  /** Draws the rows in sight anew. */
  refresh(): void;
  show(index: number, place?: 'centre' | 'nearest'): void;
  first(): number;
  visible(): number;
}

/** Browsers end an element's height near 33 million pixels; longer lists are scrolled in proportion. */
const tallest = 16_000_000;

export function virtual_list(row_height: number, make: (index: number) => HTMLElement, props: Record<string, unknown> = {}): VirtualList {
  const inner = h('div', { class: 'virtual-inner' });
  const element = h('div', { class: 'virtual', tabIndex: 0, ...props }, inner);
  let count = 0, asked = false;
  const full = () => count * row_height;
  const height = () => Math.min(full(), tallest);
  const offset = () => {
    const room = height() - element.clientHeight;
    return room <= 0 ? 0 : element.scrollTop / room * (full() - element.clientHeight);
  };
  const draw = () => {
    asked = false;
    const top = full() > tallest ? offset() : element.scrollTop;
    const first = Math.max(0, Math.floor(top / row_height) - 6);
    const last = Math.min(count, Math.ceil((top + element.clientHeight) / row_height) + 6);
    inner.textContent = '';
    for (let i = first; i < last; i++) {
      const row = make(i);
      row.style.position = 'absolute';
      row.style.top = `${i * row_height - top + element.scrollTop}px`;
      row.style.height = `${row_height}px`;
      inner.append(row);
    }
  };
  const ask = () => { if (!asked) { asked = true; requestAnimationFrame(draw); } };
  element.addEventListener('scroll', ask, { passive: true });
  new ResizeObserver(ask).observe(element);
  return {
    element,
    set(n) { count = n; inner.style.height = `${height()}px`; draw(); },
    refresh: draw,
    show(index, place = 'centre') {
      const y = index * row_height, room = element.clientHeight;
      const now = full() > tallest ? offset() : element.scrollTop;
      if (place === 'nearest' && y >= now && y + row_height <= now + room) return;
      const wanted = Math.max(0, y - room / 2);
      element.scrollTop = full() > tallest ? wanted / Math.max(1, full() - room) * (height() - room) : wanted;
      draw();
    },
    first: () => Math.floor((full() > tallest ? offset() : element.scrollTop) / row_height),
    visible: () => Math.ceil(element.clientHeight / row_height),
  };
}
