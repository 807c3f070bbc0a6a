// Colours of op classes and of changes, for both themes. A box's hue is its class, its frame what happened to it.
import { Drawing, OpClass } from '../protocol';

export const classes: { cls: OpClass; name: string; tells: string }[] = [
  { cls: 'parameter', name: 'parameter', tells: 'what comes in' },
  { cls: 'constant', name: 'constant', tells: 'literals and iota' },
  { cls: 'elementwise', name: 'elementwise', tells: 'one result an element: add, exp, select …' },
  { cls: 'movement', name: 'movement', tells: 'moves or copies: reshape, transpose, broadcast, slice, gather …' },
  { cls: 'reduction', name: 'reduction', tells: 'many to one: reduce, sort, scatter …' },
  { cls: 'contraction', name: 'contraction', tells: 'dot and convolution' },
  { cls: 'fusion', name: 'fusion', tells: 'several ops in one kernel' },
  { cls: 'library', name: 'library call', tells: 'custom calls: cuBLAS, cuDNN …' },
  { cls: 'collective', name: 'collective', tells: 'talks to other devices' },
  { cls: 'control', name: 'control', tells: 'while, conditional, call' },
  { cls: 'tuple', name: 'tuple', tells: 'puts values together, takes them apart' },
  { cls: 'other', name: 'other', tells: '' },
];

type Change = Drawing['boxes']['change'][number];

export const changes: { change: Change; name: string }[] = [
  { change: 'new', name: 'new' },
  { change: 'changed', name: 'changed' },
  { change: 'fused', name: 'fused' },
  { change: 'leaves', name: 'goes next' },
];

export interface Palette {
  dark: boolean;
  ground: string;
  group: string[];
  group_line: string;
  text: string;
  faint: string;
  line: string;
  edge: string;
  operand: string;
  user: string;
  selected: string;
  fill: Record<OpClass, string>;
  frame: Record<OpClass, string>;
  change: Record<Change, string>;
}

const hues: Record<OpClass, [number, number]> = { // hue and chroma in percent
  parameter: [215, 45],
  constant: [215, 8],
  elementwise: [205, 70],
  movement: [168, 45],
  reduction: [32, 85],
  contraction: [352, 70],
  fusion: [268, 60],
  library: [325, 60],
  collective: [55, 80],
  control: [235, 60],
  tuple: [100, 18],
  other: [0, 0],
};

function by_class(make: (hue: number, chroma: number) => string): Record<OpClass, string> {
  const result = {} as Record<OpClass, string>;
  for (const [cls, [hue, chroma]] of Object.entries(hues)) result[cls as OpClass] = make(hue, chroma);
  return result;
}

export function hex(h: number, s: number, l: number): string {
  s /= 100;
  l /= 100;
  const part = (n: number) => {
    const k = (n + h / 30) % 12, a = s * Math.min(l, 1 - l);
    return Math.round(255 * (l - a * Math.max(-1, Math.min(k - 3, 9 - k, 1)))).toString(16).padStart(2, '0');
  };
  return '#' + part(0) + part(8) + part(4);
}

export function palette(dark: boolean): Palette {
  return dark
    ? {
      dark,
      ground: '#14171c',
      group: ['#1a1e25', '#20252d', '#262c36', '#2c333f'],
      group_line: '#48536440',
      text: '#e8ecf1',
      faint: '#95a1b1',
      line: '#485364',
      edge: '#7d8b9d',
      operand: '#5fb8ff',
      user: '#ffb05f',
      selected: '#ffffff',
      fill: by_class((h, c) => hex(h, c * .55, 27)),
      frame: by_class((h, c) => hex(h, c * .8, 52)),
      change: { same: '#00000000', new: '#41d17c', changed: '#f2b632', fused: '#b58cff', leaves: '#ff6b6b' },
    }
    : {
      dark,
      ground: '#ffffff',
      group: ['#f6f8fa', '#eef1f5', '#e6eaf0', '#dee4eb'],
      group_line: '#8c99a840',
      text: '#17202a',
      faint: '#5c6876',
      line: '#b9c3ce',
      edge: '#76838f',
      operand: '#0969da',
      user: '#c2570c',
      selected: '#0b1621',
      fill: by_class((h, c) => hex(h, c, 88)),
      frame: by_class((h, c) => hex(h, c * .7, 52)),
      change: { same: '#00000000', new: '#0a8f43', changed: '#c17d00', fused: '#7a3fe0', leaves: '#d1242f' },
    };
}

/** A colour as the one number that a canvas's pixels hold (little endian: alpha, blue, green, red). */
export function pixel(colour: string): number {
  const n = parseInt(colour.slice(1, 7), 16);
  return ((0xff << 24) | ((n & 0xff) << 16) | (n & 0xff00) | (n >> 16)) >>> 0;
}
