// What is dropped on the page, unpacked in the page: folders, .tar, .tar.gz, .zip, .gz, single modules. Sizes and numbers
// are limited before memory is asked for: a small archive may unpack to anything.
export interface File_ {
  name: string;
  bytes: Uint8Array;
}

export const limits = { files: 20000, bytes: 1_500_000_000 };

export class UnpackError extends Error {}

class Budget {
  private left = limits.bytes;
  private files = 0;
  take(bytes: number): void {
    if (bytes > this.left) throw new UnpackError(`unpacks to more than ${limits.bytes.toLocaleString('en')} bytes; view it with \`hlo-replay view --serve\``);
    this.left -= bytes;
  }
  file(): void {
    if (++this.files > limits.files) throw new UnpackError(`holds more than ${limits.files.toLocaleString('en')} files`);
  }
}

async function inflate(packed: Uint8Array, format: 'gzip' | 'deflate-raw', budget: Budget, expected = 0): Promise<Uint8Array> {
  const stream = new DecompressionStream(format);
  const writer = stream.writable.getWriter();
  writer.write(packed).catch(() => undefined); // the reader tells of a fault
  writer.close().catch(() => undefined);
  const parts: Uint8Array[] = [];
  let size = 0;
  const reader = stream.readable.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      budget.take(value.length);
      size += value.length;
      parts.push(value);
    }
  } catch (error) {
    reader.cancel().catch(() => undefined);
    if (error instanceof UnpackError) throw error;
    throw new UnpackError('is damaged: its compressed data ends in the middle or is wrong');
  }
  if (expected && size !== expected) throw new UnpackError(`is damaged: ${size} bytes where its directory says ${expected}`);
  if (parts.length === 1) return parts[0];
  const whole = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

const latin = new TextDecoder('latin1'), utf8 = new TextDecoder('utf-8');

function field(header: Uint8Array, from: number, length: number): string {
  let end = from;
  while (end < from + length && header[end]) end++;
  return utf8.decode(header.subarray(from, end));
}

function octal(header: Uint8Array, from: number, length: number): number {
  if (header[from] & 0x80) { // GNU: big numbers in base 256
    let n = header[from] & 0x7f;
    for (let i = 1; i < length; i++) n = n * 256 + header[from + i];
    return n;
  }
  const text = latin.decode(header.subarray(from, from + length)).replace(/[\0 ]+/g, ' ').trim();
  if (!/^[0-7]*$/.test(text)) throw new UnpackError('is damaged: a size in its tar header is no number');
  return text ? parseInt(text, 8) : 0;
}

/** A name stays inside of its folder: no root, no `..`, no drive. */
function inside(name: string): string {
  return name.replace(/\\/g, '/').split('/').filter((part) => part && part !== '.' && part !== '..').join('/');
}

export function untar(archive: Uint8Array, budget = new Budget()): File_[] {
  const files: File_[] = [];
  let long_name = '';
  for (let at = 0; at + 512 <= archive.length;) {
    const header = archive.subarray(at, at + 512);
    if (header.every((b) => b === 0)) break;
    let sum = 0;
    for (let i = 0; i < 512; i++) sum += i >= 148 && i < 156 ? 32 : header[i];
    if (octal(header, 148, 8) !== sum) throw new UnpackError('is damaged: a tar header does not add up');
    const size = octal(header, 124, 12), kind = String.fromCharCode(header[156] || 48);
    if (!(size <= archive.length - at - 512)) throw new UnpackError('is damaged: it ends in the middle of a file');
    const data = archive.subarray(at + 512, at + 512 + size);
    at += 512 + Math.ceil(size / 512) * 512;
    if (kind === 'L') {
      long_name = field(data, 0, data.length);
      continue;
    }
    if (kind === 'x') {
      const path = utf8.decode(data).match(/(?:^|\n)\d+ path=([^\n]*)\n/);
      if (path) long_name = path[1];
      continue;
    }
    if (kind === '0' || kind === '7') {
      const prefix = field(header, 257, 5) === 'ustar' ? field(header, 345, 155) : '';
      const name = inside(long_name || (prefix ? prefix + '/' : '') + field(header, 0, 100));
      budget.file();
      if (name) files.push({ name, bytes: data });
    }
    long_name = '';
  }
  return files;
}

async function unzip(archive: Uint8Array, budget: Budget): Promise<File_[]> {
  const view = new DataView(archive.buffer, archive.byteOffset, archive.byteLength);
  let end = archive.length - 22;
  for (const stop = Math.max(0, end - 65535); end >= stop && view.getUint32(end, true) !== 0x06054b50;) end--;
  if (end < 0 || view.getUint32(end, true) !== 0x06054b50) throw new UnpackError('is damaged: a zip file without its directory');
  const count = view.getUint16(end + 10, true);
  let at = view.getUint32(end + 16, true);
  if (count === 0xffff || at === 0xffffffff) throw new UnpackError('is a zip64 file, which the page does not read; a .tar.gz of the same is read');
  const files: File_[] = [];
  for (let i = 0; i < count; i++) {
    if (at + 46 > archive.length || view.getUint32(at, true) !== 0x02014b50) throw new UnpackError('is damaged: its zip directory ends early');
    const flags = view.getUint16(at + 8, true), method = view.getUint16(at + 10, true);
    const packed = view.getUint32(at + 20, true), size = view.getUint32(at + 24, true), name_length = view.getUint16(at + 28, true);
    const place = view.getUint32(at + 42, true);
    const name = inside(utf8.decode(archive.subarray(at + 46, at + 46 + name_length)));
    const folder = archive[at + 46 + name_length - 1] === 0x2f;
    at += 46 + name_length + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
    if (folder || !name) continue;
    if (flags & 1) throw new UnpackError('is encrypted');
    if (place + 30 > archive.length || view.getUint32(place, true) !== 0x04034b50) {
      throw new UnpackError('is damaged: a file of its zip directory is not there');
    }
    const start = place + 30 + view.getUint16(place + 26, true) + view.getUint16(place + 28, true);
    if (start + packed > archive.length) throw new UnpackError('is damaged: it ends in the middle of a file');
    budget.file();
    const data = archive.subarray(start, start + packed);
    if (method === 0) files.push({ name, bytes: data });
    else if (method === 8) files.push({ name, bytes: await inflate(data, 'deflate-raw', budget, size) });
    else throw new UnpackError(`packs ${name} by method ${method}, which the page does not know`);
  }
  return files;
}

/** The files of one dropped file: itself, or what it holds. An archive's only folder is taken off its names. */
export async function unpack(name: string, content: Uint8Array, budget = new Budget()): Promise<File_[]> {
  const starts = (...magic: number[]) => magic.every((byte, i) => content[i] === byte);
  if (starts(0x1f, 0x8b)) return unpack(name.replace(/\.gz$/i, '').replace(/\.tgz$/i, '.tar'), await inflate(content, 'gzip', budget), budget);
  if (starts(0x28, 0xb5, 0x2f, 0xfd)) throw new UnpackError('is packed by zstd, which browsers cannot unpack; a .tar.gz or .zip of the same is read');
  if (starts(0x50, 0x4b, 0x03, 0x04) || starts(0x50, 0x4b, 0x05, 0x06)) return unzip(content, budget);
  if (content.length >= 512 && latin.decode(content.subarray(257, 262)) === 'ustar') return untar(content, budget);
  return [{ name: inside(name), bytes: content }];
}

/** The bytes behind base64. */
export function plain_bytes(text: string): Uint8Array {
  const letters = atob(text), bytes = new Uint8Array(letters.length); // blanks in it are no fault
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

/** What base64 of gzipped bytes holds. */
export async function from_base64(text: string, budget = new Budget()): Promise<Uint8Array> {
  return inflate(plain_bytes(text), 'gzip', budget);
}

/** Base64 of a gzipped ustar archive, as the page carries its data. */
export async function carried_files(text: string): Promise<File_[]> {
  const budget = new Budget();
  return untar(await from_base64(text, budget), budget);
}

interface Entry {
  isFile: boolean;
  isDirectory: boolean;
  fullPath: string;
  file(yes: (file: File) => void, no: (error: unknown) => void): void;
  createReader(): { readEntries(yes: (entries: Entry[]) => void, no: (error: unknown) => void): void };
}

async function walk(entry: Entry, found: { name: string; file: File }[]): Promise<void> {
  if (found.length > limits.files) throw new UnpackError(`holds more than ${limits.files.toLocaleString('en')} files`);
  if (entry.isFile) {
    const file = await new Promise<File>((yes, no) => entry.file(yes, no));
    found.push({ name: entry.fullPath.replace(/^\//, ''), file });
  } else if (entry.isDirectory) {
    const reader = entry.createReader();
    for (;;) {
      const entries = await new Promise<Entry[]>((yes, no) => reader.readEntries(yes, no));
      if (!entries.length) break;
      for (const inner of entries) await walk(inner, found);
    }
  }
}

async function read_all(found: { name: string; file: File }[]): Promise<File_[]> {
  const budget = new Budget(), files: File_[] = [];
  for (const { name, file } of found) {
    budget.take(file.size);
    files.push(...await unpack(name, new Uint8Array(await file.arrayBuffer()), budget));
    if (files.length > limits.files) throw new UnpackError(`holds more than ${limits.files.toLocaleString('en')} files`);
  }
  return files;
}

/** Everything that was dropped, unpacked. Entries are taken before the first wait: the browser forgets them after it. */
export async function dropped(data: DataTransfer): Promise<File_[]> {
  const entries: Entry[] = [], found: { name: string; file: File }[] = [];
  for (const item of Array.from(data.items)) {
    const entry = (item as unknown as { webkitGetAsEntry?: () => Entry | null }).webkitGetAsEntry?.();
    if (entry) entries.push(entry);
    else {
      const file = item.kind === 'file' ? item.getAsFile() : null;
      if (file) found.push({ name: file.name, file });
    }
  }
  for (const entry of entries) await walk(entry, found);
  return read_all(found);
}

export function chosen(list: FileList): Promise<File_[]> {
  return read_all(Array.from(list).map((file) => ({ name: (file as { webkitRelativePath?: string }).webkitRelativePath || file.name, file })));
}
