// The little of CodeMirror 5 that the bench uses.
declare module 'codemirror/lib/codemirror.js' {
  export interface Stream {
    sol(): boolean;
    eatSpace(): boolean;
    skipToEnd(): void;
    match(pattern: RegExp): RegExpMatchArray | null;
    next(): string | undefined;
    readonly string: string;
    pos: number;
  }
  export interface Editor {
    getValue(): string;
    setValue(text: string): void;
    refresh(): void;
    focus(): void;
    lineCount(): number;
    setOption(name: string, value: unknown): void;
    on(event: 'change' | 'blur' | 'cursorActivity', handler: () => void): void;
    addLineClass(line: number, where: 'background' | 'wrap' | 'text', name: string): unknown;
    removeLineClass(line: number, where: 'background' | 'wrap' | 'text', name?: string): unknown;
    scrollIntoView(at: { line: number; ch: number }, margin?: number): void;
    setCursor(line: number, ch?: number): void;
    getWrapperElement(): HTMLElement;
  }
  export interface Library {
    (place: HTMLElement, options: Record<string, unknown>): Editor;
    defineMode(name: string, mode: () => { token(stream: Stream): string | null; lineComment?: string }): void;
  }
  const CodeMirror: Library;
  export default CodeMirror;
}
