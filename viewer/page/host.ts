// What a view may ask of the page around it.
import { Engine, Id, StateRef } from './protocol';
import { Notice, Place, Session, ViewName } from './session';

export interface Host {
  session: Session;
  engine: Engine;
  /** Shows another place; resolves when it is drawn. `push` makes it a step of the browser's history. */
  go(change: Partial<Place>, how?: 'push' | 'replace'): Promise<void>;
  select(id: Id | null, name: string, change?: Partial<Place>): Promise<void>;
  notice(notice: Notice): void;
  failed(error: unknown): void;
  /** Read out by screen readers. */
  say(text: string): void;
  /** Which stage made the module wrong; shown where it is found. */
  find_fault(): Promise<void>;
  /** A new module came (edited, dropped, run): lists are read again. */
  reload(): Promise<void>;
}

export interface View {
  name: ViewName;
  element: HTMLElement;
  show(place: Place, turn: number): Promise<void>;
  /** True where the key meant something here. */
  key?(event: KeyboardEvent): boolean;
  theme?(): void;
}

export function stage_name(host: Host, at: StateRef): string {
  const info = host.session.info(at.module);
  return (info && host.session.modules.length > 1 ? `${info.name} · ` : '') + host.session.stage_words(at);
}
