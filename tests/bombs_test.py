#!/usr/bin/env python3
"""Hostile texts: every one ends with a clean exit code, soon, and without eating memory."""
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

tool = sys.argv[1]
def pre(n): return 'HloModule m\nENTRY e { '+n+' }\n'
B={
'nul':'HloModule m\nENTRY e { r = f32[] para\0meter(0) }\n',
'utf8':b'HloModule m\nENTRY e { r = f32[] \xff\xfe\x80 parameter(0) }\n',
'nest tuple shape':pre('r = '+'('*20000+'f32[]'+')'*20000+' parameter(0)'),
'nest open only':pre('r = '+'('*200000),
'nest literal':pre('r = f32[1,1] constant('+'{'*200000+')'),
'nest operands':pre('p = f32[] parameter(0) ROOT r = f32[] '+'negate('*20000+'p'+')'*20000),
'nest inline comps':pre('p = f32[] parameter(0) ROOT r = f32[] '+'call(p), to_apply={ p = f32[] parameter(0) ROOT r = f32[] '*5000+'negate(p)'+' }'*5000),
'nest dict':pre('p = f32[] parameter(0) ROOT r = f32[] negate(p), backend_config='+'{'*200000),
'nest sharding':pre('p = f32[] parameter(0) ROOT r = f32[] negate(p), sharding='+'{'*200000),
'nest origin':pre('p = f32[] parameter(0) ROOT r = f32[] negate(p), origin={'+'('*200000),
'nest typed literal':pre('ROOT r = f32[] custom-call(), custom_call_target="x", literal='+'('*200000),
'dims 2^63':pre('ROOT r = f32[9223372036854775807] constant({...})'),
'dims 2^62':pre('ROOT r = f32[4611686018427387904] constant({1,2})'),
'dims 2^40 iota':pre('ROOT r = f32[1099511627776] iota(), iota_dimension=0'),
'sparse huge':pre('ROOT r = f32[1073741824,1024]sparse{3} constant({[1,1]:2})'),
'layout perm huge':pre('ROOT r = f32['+','.join(['1']*2000)+'] parameter(0)'),
'iota devices':pre('p = f32[8] parameter(0) ROOT r = f32[8] negate(p), sharding={devices=[1099511627776]<=[1099511627776]}'),
'iota devices 2':pre('p = f32[8] parameter(0) ROOT r = f32[8] negate(p), sharding={devices=[4294967296,2]<=[2,4294967296]T(1,0) last_tile_dims={manual,replicated}}'),
'iota subgroup':pre('p = f32[8] parameter(0) ROOT r = f32[8] negate(p), sharding={devices=[1,65536,65536]<=[65536,65536]T(1,0) last_tile_dims={replicated,manual}}'),
'groups iota':pre('p = f32[8] parameter(0) ROOT r = f32[8] all-to-all(p), replica_groups=[65536,65536]<=[4294967296], dimensions={0}'),
'param number':pre('ROOT r = f32[] parameter(999999999)'),
'param gap':pre('ROOT r = f32[] parameter(999999)'),
'cyclic':'HloModule m\na { p = f32[] parameter(0)\n ROOT r = f32[] call(p), to_apply=a }\n',
'dup names':pre('a = f32[] parameter(0) a = f32[] negate(a)'),
'stack tables':'HloModule m\n\nFileNames\n1 "f"\n\nFunctionNames\n1 "f"\n\nFileLocations\n1 {file_name_id=2147483648 function_name_id=1 line=99999999999}\n\nStackFrames\n1 {file_location_id=1 parent_frame_id=2147483648}\n\n'+pre('ROOT p = f32[] parameter(0), metadata={op_name="x" stack_frame_id=1}')[len('HloModule m'):].lstrip(),
'one long line':'HloModule m ENTRY e { p0 = f32[] parameter(0) '+' '.join(f'a{i} = f32[] negate(p0), metadata={{op_name="x{i}"}}' for i in range(200000))+' }',
'one long line attrs':'HloModule m ENTRY e { p0 = f32[4] parameter(0) '+' '.join(f'a{i} = f32[4] broadcast(p0), dimensions={{0}}, sharding={{devices=[2]<=[2]}}' for i in range(200000))+' }',
'many errors':'HloModule m\nENTRY e {\n'+'\n'.join(f' a{i} = f32[] nope(b{i})' for i in range(200000))+'\n}\n',
'long name':pre('p = f32[] parameter(0) ROOT '+'a'*10000000+' = f32[] negate(p)'),
'undefined in large':'HloModule m\nENTRY e {\n p = f32[] parameter(0)\n'+'\n'.join(f' a{i} = f32[] negate(p)' for i in range(300000))+'\n ROOT r = f32[] negate(aaa)\n}\n',
'many comps inline':'HloModule m\nENTRY e {\n p = f32[] parameter(0)\n'+'\n'.join(f' a{i} = f32[] call(p), to_apply={{ p = f32[] parameter(0)\n ROOT n = f32[] negate(p) }}' for i in range(50000))+'\n}\n',
'async many':'HloModule m\nENTRY e {\n p = f32[] parameter(0)\n'+'\n'.join(f' a{i} = ((f32[]), f32[], u32[]) negate-start(p)\n b{i} = f32[] negate-done(a{i})' for i in range(30000))+'\n}\n',
'async update chain':'HloModule m\nENTRY e {\n p = f32[] parameter(0)\n a0 = ((f32[]), f32[], u32[]) negate-start(p)\n'+'\n'.join(f' a{i+1} = ((f32[]), f32[], u32[]) negate-update(a{i})' for i in range(20000))+'\n b = f32[] negate-done(a20000)\n}\n',
'control preds':'HloModule m\nENTRY e {\n p = f32[] parameter(0)\n'+'\n'.join(f' a{i} = f32[] negate(p)' for i in range(30000))+'\n ROOT r = f32[] negate(p), control-predecessors={'+', '.join(f'a{i}' for i in range(30000))+'}\n}\n',
'huge operands':'HloModule m\nENTRY e {\n p = f32[] parameter(0)\n ROOT t = ('+', '.join(['f32[]']*200000)+') tuple('+', '.join(['p']*200000)+')\n}\n',
'same name collide':'HloModule m\n'+''.join(f'c{i} {{ ROOT x = f32[] parameter(0) }}\n' for i in range(100000)),
'unclosed string':pre('p = f32[] parameter(0) ROOT r = f32[] negate(p), metadata={op_name="'+'x'*5000000),
'unclosed comment':pre('/* '+'x'*5000000),
'comments':'HloModule m\nENTRY e { '+'/**/'*2000000+' ROOT r = f32[] parameter(0) }',
'braces in text':'{'*5000000,'percent':'%'*5000000,'commas':pre('p = f32[] parameter(0) ROOT r = f32[] negate('+','*5000000+'p)'),
'digits':pre('ROOT r = f32[] constant('+'1'*5000000+')'),
'huge window':pre('p = f32[4] parameter(0) ROOT r = f32[4] custom-call(p), custom_call_target="x", window={size='+'x'.join(['1']*1000000)+'}'),
'mesh overlap':pre('p = f32[4] parameter(0) ROOT r = f32[4] negate(p), sharding={mesh['+','.join(f"'a{i}'=1" for i in range(20000))+'], [{'+','.join(f"'a{i}'" for i in range(20000))+'}]}'),
'tuple sharding leaves':pre('p = ('+','.join(['f32[]']*100000)+') parameter(0), sharding={replicated}'),
'replication':pre('p = ('+','.join(['f32[]']*100000)+') parameter(0), parameter_replication={'+','.join(['true']*100000)+'}'),
}

# Under sanitizers memory is not ours to count.
sanitized = "asan" in str(pathlib.Path(tool).resolve())
failures = 0
with tempfile.TemporaryDirectory() as directory:
    path = pathlib.Path(directory) / "bomb.hlo"
    for verb in ("print", "verify"):
        for name, text in B.items():
            data = text.encode() if isinstance(text, str) else text
            path.write_bytes(data)
            limit = 4 * len(data) + (64 << 20)

            def cap():
                # Room for what a refusal may need and the tables that an accepted text fills.
                if not sanitized:
                    resource.setrlimit(resource.RLIMIT_DATA, (limit + (64 << 20), limit + (64 << 20)))

            try:
                done = subprocess.run([tool, verb, path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=120, preexec_fn=cap)
                problem = f"exit {done.returncode}: {done.stderr[-200:]}" if done.returncode not in (0, 1, 2) else ""
                if b"bad_alloc" in done.stderr:
                    problem = "out of memory"
            except subprocess.TimeoutExpired:
                problem = "does not end"
            if problem:
                failures += 1
                print(f"FAILED {verb} {name}: {problem}")
print(f"bombs_test: {2 * len(B)} runs, {failures} failed")
sys.exit(1 if failures else 0)
