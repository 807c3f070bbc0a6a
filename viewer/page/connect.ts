// The engine inside of the page: a worker made of the page's own text, asked by messages.
import { Engine } from './protocol';
import { EngineError } from './answers';

export async function connect(): Promise<Engine> {
  throw new EngineError('This page has no engine inside', 'Build hlo-replay with -DHLO_ENGINE=ON.');
}
