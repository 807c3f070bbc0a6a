// A list of any length of which only the rows in sight are elements. A row stays the same element while it is in sight:
// one that was made anew between the button's going down and coming up would lose the click, and selected text.
import { h } from './dom';

export interface VirtualList {
  element: HTMLElement;
  set(count: number): void;
  /** Draws the rows in sight anew; while a button is held down on one of them, as soon as it is let go. */
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
  let count = 0, asked = false, pressed = false, stale = false;
  const rows = new Map<number, HTMLElement>(); // those in sight, by index
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
    for (const [i, row] of rows) {
      if (i < first || i >= last) {
        row.remove();
        rows.delete(i);
      }
    }
    let after: HTMLElement | null = null;
    for (let i = first; i < last; i++) {
      let row = rows.get(i);
      if (!row) {
        row = make(i);
        row.style.position = 'absolute';
        row.style.height = `${row_height}px`;
        rows.set(i, row);
        if (after) after.after(row);
        else inner.prepend(row); // in the order of the list, for who reads it aloud
      }
      row.style.top = `${i * row_height - top + element.scrollTop}px`;
      after = row;
    }
  };
  const anew = () => {
    stale = false;
    rows.clear();
    inner.textContent = '';
    draw();
  };
  const released = () => {
    pressed = false;
    if (stale) {
      setTimeout(() => {
        if (stale && !pressed) anew();
      }, 0);
    }
  }; // behind the click
  inner.addEventListener('pointerdown', () => {
    pressed = true;
  });
  for (const end of ['pointerup', 'pointercancel', 'blur']) window.addEventListener(end, released, { capture: true });
  const ask = () => {
    if (!asked) {
      asked = true;
      requestAnimationFrame(draw);
    }
  };
  element.addEventListener('scroll', ask, { passive: true });
  new ResizeObserver(ask).observe(element);
  return {
    element,
    set(n) {
      count = n;
      inner.style.height = `${height()}px`;
      anew();
    },
    refresh() {
      if (pressed) {
        stale = true;
        draw();
      } else anew();
    },
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
