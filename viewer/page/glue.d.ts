// What emscripten writes beside the module (build/engine/glue.js): its loader, and the exports of wasm_main.cc.
declare module 'hlo-engine-glue' {
  export interface EngineModule {
    HEAPU8: Uint8Array; // another one whenever the memory has grown
    _hlo_allocate(bytes: number): number;
    _hlo_put(name: number, nameSize: number, bytes: number, size: number): void;
    _hlo_ask(question: number, size: number): void;
    _hlo_answer_bytes(): number;
    _hlo_answer_size(): number;
  }
  export default function makeEngine(options: { wasmBinary: ArrayBuffer; print(line: string): void; printErr(line: string): void }): Promise<EngineModule>;
}
