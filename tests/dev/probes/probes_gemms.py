#!/usr/bin/env python3
"""Products of matrices and what follows them, for the passes that make calls of cuBLASLt:

  probes_gemms.py DIR

writes some 130 modules; oracle_compile.py --flags=--xla_gpu_enable_triton_gemm=false compiles them so that the library
takes them all, without the flag those that Triton does not take."""
import pathlib
import sys

P = pathlib.Path(sys.argv[1])
P.mkdir(parents=True, exist_ok=True)
def w(n,body,extra=''):
    (P/f'{n}.hlo').write_text(f'HloModule {n}\n{extra}\nENTRY main {{\n'+'\n'.join('  '+l for l in body)+'\n}\n')
def dot(t='f32',m=256,k=512,n=128,lb=(),rc=0,lc=1,ot=None,attrs=''):
    return f'd = {ot or t}[{m},{n}] dot(a, b), lhs_contracting_dims={{{lc}}}, rhs_contracting_dims={{{rc}}}{attrs}'
def ab(t,m=256,k=512,n=128,ta=False,tb=False,t2=None):
    return [f'a = {t}[{k},{m}] parameter(0)' if ta else f'a = {t}[{m},{k}] parameter(0)', f'b = {t2 or t}[{n},{k}] parameter(1)' if tb else f'b = {t2 or t}[{k},{n}] parameter(1)']
for t in ['f32','f16','bf16','f64','c64','c128','s8','s32','u8','pred']:
    ot={'s8':'s32','u8':'s32','pred':'s32'}.get(t,t)
    w(f'type_{t}',ab(t)+['ROOT '+dot(t,ot=ot)])
for t,ot in [('bf16','f32'),('f16','f32'),('f32','f64'),('s8','f32'),('bf16','f16')]:
    w(f'mixed_{t}_{ot}',ab(t)+['ROOT '+dot(t,ot=ot)])
for ta,tb in [(1,0),(0,1),(1,1)]:
    w(f'trans_{ta}{tb}',ab('f32',ta=ta,tb=tb)+['ROOT '+dot(lc=0 if ta else 1,rc=1 if tb else 0)])
w('small',ab('f32',4,4,4)+['ROOT '+dot(m=4,n=4)])
w('small_s8',ab('s8',4,4,4)+['ROOT '+dot('s8',m=4,n=4,ot='s32')])
w('odd_f16',ab('f16',100,37,51)+['ROOT '+dot('f16',m=100,n=51)])
w('odd_bf16',ab('bf16',100,37,51)+['ROOT '+dot('bf16',m=100,n=51)])
w('odd_s8',ab('s8',101,37,51)+['ROOT '+dot('s8',m=101,n=51,ot='s32')])
def bat(t,b,m,k,n): return [f'a = {t}[{b},{m},{k}] parameter(0)',f'b = {t}[{b},{k},{n}] parameter(1)']
def bdot(t,b,m,n,ot=None): return f'd = {ot or t}[{b},{m},{n}] dot(a, b), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}'
for t in ['f32','bf16']: w(f'batch_{t}',bat(t,8,64,128,96)+['ROOT '+bdot(t,8,64,96)])
w('batch_odd_bf16',bat('bf16',3,33,35,37)+['ROOT '+bdot('bf16',3,33,37)])
w('batch2',['a = f32[4,6,64,128] parameter(0)','b = f32[4,6,128,96] parameter(1)','ROOT d = f32[4,6,64,96] dot(a, b), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_contracting_dims={2}'])
w('batch_mid',['a = f32[64,8,128] parameter(0)','b = f32[128,8,96] parameter(1)','ROOT d = f32[8,64,96] dot(a, b), lhs_batch_dims={1}, rhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_contracting_dims={0}'])
w('batch_bcast',['a = f32[64,128] parameter(0)','c = f32[8,64,128] broadcast(a), dimensions={1,2}','b = f32[8,128,96] parameter(1)','ROOT d = f32[8,64,96] dot(c, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}'])
w('batch_bcast_r',['b = f32[128,96] parameter(0)','c = f32[8,128,96] broadcast(b), dimensions={1,2}','a = f32[8,64,128] parameter(1)','ROOT d = f32[8,64,96] dot(a, c), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}'])
w('vec_r',['a = f32[4096,2048] parameter(0)','b = f32[2048] parameter(1)','ROOT d = f32[4096] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}'])
w('vec_l',['a = f32[2048] parameter(0)','b = f32[2048,4096] parameter(1)','ROOT d = f32[4096] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}'])
w('batch_vec',['a = f32[32,4096,256] parameter(0)','b = f32[32,256] parameter(1)','ROOT d = f32[32,4096] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}'])
w('outer',['a = f32[256] parameter(0)','b = f32[128] parameter(1)','ROOT d = f32[256,128] dot(a, b), lhs_contracting_dims={}, rhs_contracting_dims={}'])
w('outer_batch',['a = f32[8,256] parameter(0)','b = f32[8,128] parameter(1)','ROOT d = f32[8,256,128] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={}, rhs_contracting_dims={}'])
w('three',['a = f32[16,32,512] parameter(0)','b = f32[512,128] parameter(1)','ROOT d = f32[16,32,128] dot(a, b), lhs_contracting_dims={2}, rhs_contracting_dims={0}'])
S='[256,128]'
def sc(v,t='f32',n='c'): return [f'{n}0 = {t}[] constant({v})',f'{n} = {t}{S} broadcast({n}0), dimensions={{}}']
for t in ['f32','bf16','f64','s8']:
    ot={'s8':'s32'}.get(t,t)
    w(f'alpha_{t}',ab(t)+[dot(t,ot=ot)]+sc(3,ot)+[f'ROOT m = {ot}{S} multiply(d, c)'])
w('alpha_c64',ab('c64')+[dot('c64')]+['c0 = c64[] constant((3,2))',f'c = c64{S} broadcast(c0), dimensions={{}}',f'ROOT m = c64{S} multiply(d, c)'])
w('alpha2',ab('f32')+[dot()]+sc(3)+sc(2.5,n='e')+[f'm = f32{S} multiply(c, d)',f'x = f32{S} tanh(m)',f'ROOT t = (f32{S}, f32{S}) tuple(m, x)'])
for t in ['f32','bf16','f16','f64','c64']:
    w(f'beta_param_{t}',ab(t)+[f'p = {t}{S} parameter(2)',dot(t),f'ROOT s = {t}{S} add(d, p)'])
    if t!='c64': w(f'beta_{t}',ab(t)+[f'p = {t}{S} parameter(2)',f'q = {t}{S} exponential(p)',dot(t),f'ROOT s = {t}{S} add(q, d)'])
w('beta_s8',ab('s8')+[f'p = s32{S} parameter(2)',f'q = s32{S} negate(p)',dot('s8',ot='s32'),f'ROOT s = s32{S} add(q, d)'])
w('beta_users',ab('f32')+[f'p = f32{S} parameter(2)',f'q = f32{S} exponential(p)',dot(),f's = f32{S} add(q, d)',f'ROOT t = (f32{S},f32{S}) tuple(s,q)'])
w('beta_alpha',ab('f32')+[f'p = f32{S} parameter(2)',f'q = f32{S} exponential(p)',dot()]+sc(3)+[f'm = f32{S} multiply(d, c)',f'ROOT s = f32{S} add(m, q)'])
w('beta_mixed',ab('bf16')+[f'p = f32{S} parameter(2)',f'q = f32{S} exponential(p)',dot('bf16'),f'v = f32{S} convert(d)',f'ROOT s = f32{S} add(v, q)'])
w('beta_twice',ab('f32')+[f'p = f32{S} parameter(2)',f'q = f32{S} exponential(p)',dot(),f's = f32{S} add(d, q)',f'p2 = f32{S} parameter(3)',f'q2 = f32{S} exponential(p2)',f'ROOT zz = f32{S} add(s, q2)'])
w('beta_batch',bat('f32',8,64,128,96)+['p = f32[8,64,96] parameter(2)','q = f32[8,64,96] exponential(p)',bdot('f32',8,64,96),'ROOT s = f32[8,64,96] add(d, q)'])
w('beta_two_dots',ab('f32')+[dot(),'a2 = f32[256,64] parameter(2)','b2 = f32[64,128] parameter(3)','e = f32[256,128] dot(a2, b2), lhs_contracting_dims={1}, rhs_contracting_dims={0}',f'ROOT s = f32{S} add(d, e)'])
w('beta_three',['a = f32[16,32,512] parameter(0)','b = f32[512,128] parameter(1)','d = f32[16,32,128] dot(a, b), lhs_contracting_dims={2}, rhs_contracting_dims={0}','p = f32[16,32,128] parameter(2)','q = f32[16,32,128] exponential(p)','ROOT s = f32[16,32,128] add(d, q)'])
w('beta_const',ab('f32')+[dot(),'k0 = f32[2] constant({1,2})','k = f32[256,64,2] broadcast(k0), dimensions={2}',f'k2 = f32{S} reshape(k)',f'ROOT s = f32{S} add(d, k2)'])
for t in ['f32','bf16','f64','f16','c64']:
    w(f'bias_{t}',ab(t)+[dot(t),f'v = {t}[128] parameter(2)',f'w = {t}{S} broadcast(v), dimensions={{1}}',f'ROOT s = {t}{S} add(d, w)'])
w('bias_rows',ab('f32')+[dot(),'v = f32[256] parameter(2)',f'w = f32{S} broadcast(v), dimensions={{0}}',f'ROOT s = f32{S} add(d, w)'])
w('bias_three',['a = f32[16,32,512] parameter(0)','b = f32[512,128] parameter(1)','d = f32[16,32,128] dot(a, b), lhs_contracting_dims={2}, rhs_contracting_dims={0}','v = f32[128] parameter(2)','w = f32[16,32,128] broadcast(v), dimensions={2}','ROOT s = f32[16,32,128] add(d, w)'])
w('bias_matrix',ab('f32')+[dot(),f'v = f32[128] parameter(2)',f'w = f32{S} broadcast(v), dimensions={{1}}',f's = f32{S} add(d, w)',f'p = f32{S} parameter(3)',f'q = f32{S} exponential(p)',f'ROOT zz = f32{S} add(s, q)'])
for t in ['f32','bf16']:
    w(f'relu_{t}',ab(t)+[dot(t)]+sc(0,t)+[f'ROOT r = {t}{S} maximum(d, c)'])
    w(f'bias_relu_{t}',ab(t)+[dot(t),f'v = {t}[128] parameter(2)',f'w = {t}{S} broadcast(v), dimensions={{1}}',f's = {t}{S} add(d, w)']+sc(0,t)+[f'ROOT r = {t}{S} maximum(c, s)'])
w('relu_beta',ab('f32')+[f'p = f32{S} parameter(2)',f'q = f32{S} exponential(p)',dot(),f's = f32{S} add(d, q)']+sc(0)+[f'ROOT r = f32{S} maximum(s, c)'])
w('relu_users',ab('f32')+[dot()]+sc(0)+[f'r = f32{S} maximum(d, c)',f'ROOT t = (f32{S},f32{S}) tuple(d, r)'])
def gelu(t,x):
    o=[]
    for n,v in [('h',0.5),('o',1),('g',0.797884583),('f',0.044715)]: o+=sc(v,t,n)
    return o+[f'x2 = {t}{S} multiply({x}, {x})',f'x3 = {t}{S} multiply(x2, {x})',f'x4 = {t}{S} multiply(x3, f)',f'x5 = {t}{S} add({x}, x4)',f'x6 = {t}{S} multiply(x5, g)',f'x7 = {t}{S} tanh(x6)',f'x8 = {t}{S} add(x7, o)',f'x9 = {t}{S} multiply(x8, h)',f'y = {t}{S} multiply({x}, x9)']
for t in ['f32','bf16']:
    g=gelu(t,'d'); g[-1]='ROOT '+g[-1]
    w(f'gelu_{t}',ab(t)+[dot(t)]+g)
    w(f'gelu_aux_{t}',ab(t)+[dot(t)]+gelu(t,'d')+[f'ROOT t = ({t}{S},{t}{S}) tuple(y, d)'])
B=[f'v = f32[128] parameter(2)',f'w = f32{S} broadcast(v), dimensions={{1}}',f's = f32{S} add(d, w)']
g=gelu('f32','s'); g[-1]='ROOT '+g[-1]
w('bias_gelu',ab('f32')+[dot()]+B+g)
w('bias_gelu_aux',ab('f32')+[dot()]+B+gelu('f32','s')+[f'ROOT t = (f32{S},f32{S}) tuple(y, s)'])
for al in ['dot_bf16_bf16_f32','dot_bf16_bf16_f32_x3','dot_bf16_bf16_f32_x6','dot_bf16_bf16_f32_x9','dot_tf32_tf32_f32','dot_tf32_tf32_f32_x3','dot_f32_f32_f32']:
    w('alg_'+al,bat('f32',8,64,128,96)+['ROOT '+bdot('f32',8,64,96)+f', algorithm={al}'])
w('prec2',bat('f32',8,64,128,96)+['ROOT '+bdot('f32',8,64,96)+', operand_precision={high,highest}'])
w('gelu_three',['a = f32[16,32,512] parameter(0)','b = f32[512,128] parameter(1)','d = f32[16,32,128] dot(a, b), lhs_contracting_dims={2}, rhs_contracting_dims={0}']+[l.replace('[256,128]','[16,32,128]') for l in gelu('f32','d')[:-1]]+['ROOT y = f32[16,32,128] multiply(d, x9)'])
w('relu_three',['a = f32[16,32,512] parameter(0)','b = f32[512,128] parameter(1)','d = f32[16,32,128] dot(a, b), lhs_contracting_dims={2}, rhs_contracting_dims={0}','z = f32[] constant(0)','zb = f32[16,32,128] broadcast(z), dimensions={}','ROOT r = f32[16,32,128] maximum(d, zb)'])
w('gelu_odd_bf16',['a = bf16[100,37] parameter(0)','b = bf16[37,51] parameter(1)','d = bf16[100,51] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}']+[l.replace('[256,128]','[100,51]') for l in gelu('bf16','d')[:-1]]+['ROOT y = bf16[100,51] multiply(d, x9)'])
w('bias_odd_bf16',['a = bf16[100,37] parameter(0)','b = bf16[37,51] parameter(1)','d = bf16[100,51] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}','v = bf16[51] parameter(2)','w = bf16[100,51] broadcast(v), dimensions={1}','ROOT s = bf16[100,51] add(d, w)'])
w('beta_odd_bf16',['a = bf16[100,37] parameter(0)','b = bf16[37,51] parameter(1)','d = bf16[100,51] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}','p = bf16[100,51] parameter(2)','q = bf16[100,51] negate(p)','ROOT s = bf16[100,51] add(d, q)'])
w('relu_odd_bf16',['a = bf16[100,37] parameter(0)','b = bf16[37,51] parameter(1)','d = bf16[100,51] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}','z = bf16[] constant(0)','zb = bf16[100,51] broadcast(z), dimensions={}','ROOT r = bf16[100,51] maximum(d, zb)'])
w('batch_minor',['a = f32[64,128,8] parameter(0)','b = f32[128,96,8] parameter(1)','ROOT d = f32[8,64,96] dot(a, b), lhs_batch_dims={2}, rhs_batch_dims={2}, lhs_contracting_dims={1}, rhs_contracting_dims={0}'])
w('batch3',['a = f32[2,3,4,64,128] parameter(0)','b = f32[2,3,4,128,96] parameter(1)','ROOT d = f32[2,3,4,64,96] dot(a, b), lhs_batch_dims={0,1,2}, rhs_batch_dims={0,1,2}, lhs_contracting_dims={4}, rhs_contracting_dims={3}'])
w('two_contracting',['a = f32[64,32,16] parameter(0)','b = f32[32,16,96] parameter(1)','ROOT d = f32[64,96] dot(a, b), lhs_contracting_dims={1,2}, rhs_contracting_dims={0,1}'])
w('prec',ab('f32')+['ROOT '+dot(attrs=', operand_precision={highest,highest}')])
w('loop',['a = f32[256,256] parameter(0)','n = s32[] constant(0)','t = (s32[], f32[256,256]) tuple(n, a)','ROOT w = (s32[], f32[256,256]) while(t), condition=cond, body=body'],
 extra='''body {
  p = (s32[], f32[256,256]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[256,256] get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  d = f32[256,256] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[256,256] add(d, x)
  ROOT r = (s32[], f32[256,256]) tuple(j, s)
}
cond {
  p = (s32[], f32[256,256]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  ten = s32[] constant(10)
  ROOT c = pred[] compare(i, ten), direction=LT
}
''')
# fp8
for t,t2,ot in [('f8e4m3fn','f8e4m3fn','f32'),('f8e4m3fn','f8e5m2','bf16'),('f8e5m2','f8e5m2','f32'),('f8e4m3fn','f8e4m3fn','f8e4m3fn'),('f8e4m3fn','f8e4m3fn','f16')]:
    w(f'fp8_{t}_{t2}_{ot}',ab(t,t2=t2)+['ROOT '+dot(ot=ot)])
def f8scaled(t='f32',m=256,k=512,n=128,op='multiply',shape=None):
    return [f'a8 = f8e4m3fn[{m},{k}] parameter(0)',f'b8 = f8e4m3fn[{k},{n}] parameter(1)',f'as = {t}[] parameter(2)',f'bs = {t}[] parameter(3)',f'ac = {t}[{m},{k}] convert(a8)',f'bc = {t}[{k},{n}] convert(b8)',f'ab = {t}[{m},{k}] broadcast(as), dimensions={{}}',f'bb = {t}[{k},{n}] broadcast(bs), dimensions={{}}',f'a = {t}[{m},{k}] {op}(ac, ab)',f'b = {t}[{k},{n}] {op}(bc, bb)']
w('fp8_scaled',f8scaled()+['ROOT '+dot()])
w('fp8_scaled_bf16',f8scaled('bf16')+['ROOT '+dot('bf16')])
w('fp8_scaled_div',f8scaled(op='divide')+['ROOT '+dot()])
w('fp8_scaled_odd',f8scaled(m=100,k=50,n=70)+['ROOT '+dot(m=100,n=70)])
w('fp8_scaled_relu',f8scaled('bf16')+[dot('bf16')]+sc(0,'bf16')+[f'ROOT r = bf16{S} maximum(d, c)'])
w('fp8_scaled_bias',f8scaled('bf16')+[dot('bf16'),'v = bf16[128] parameter(4)',f'w = bf16{S} broadcast(v), dimensions={{1}}',f'ROOT s = bf16{S} add(d, w)'])
w('fp8_scaled_beta',f8scaled('bf16')+[dot('bf16'),f'p = bf16{S} parameter(4)',f'q = bf16{S} negate(p)',f'ROOT s = bf16{S} add(d, q)'])
w('fp8_scaled_out',f8scaled('f32')+[dot(),'ds = f32[] parameter(4)',f'db = f32{S} broadcast(ds), dimensions={{}}',f'dd = f32{S} divide(d, db)']+sc(-448,n='l')+sc(448,n='u')+[f'cl = f32{S} clamp(l, dd, u)',f'ROOT e = f8e4m3fn{S} convert(cl)'])
w('fp8_scaled_amax',f8scaled('f32')+[dot(),'ds = f32[] parameter(4)',f'db = f32{S} broadcast(ds), dimensions={{}}',f'dd = f32{S} divide(d, db)']+sc(-448,n='l')+sc(448,n='u')+[f'cl = f32{S} clamp(l, dd, u)',f'e = f8e4m3fn{S} convert(cl)',f'abs = f32{S} abs(d)','ni = f32[] constant(-inf)','am = f32[] reduce(abs, ni), dimensions={0,1}, to_apply=mx',f'ROOT t = (f8e4m3fn{S}, f32[]) tuple(e, am)'],extra='mx {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT z = f32[] maximum(x, y)\n}\n')
w('fp8_batch',['a = f8e4m3fn[8,64,128] parameter(0)','b = f8e4m3fn[8,128,96] parameter(1)','ROOT d = f32[8,64,96] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}'])
w('fp8_transposed',['a = f8e4m3fn[256,512] parameter(0)','b = f8e4m3fn[128,512] parameter(1)','ROOT d = f32[256,128] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}'])
w('softmax_attn',['q = f32[8,128,64] parameter(0)','k = f32[8,128,64] parameter(1)','v = f32[8,128,64] parameter(2)','s = f32[8,128,128] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}','e = f32[8,128,128] exponential(s)','ROOT o = f32[8,128,64] dot(e, v), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}'])
B=[f'v = f32[128] parameter(2)',f'w = f32{S} broadcast(v), dimensions={{1}}',f's = f32{S} add(d, w)']
w('bias_alpha',ab('f32')+[dot()]+B+sc(3)+[f'ROOT m = f32{S} multiply(s, c)'])
w('relu_alpha',ab('f32')+[dot()]+sc(0)+[f'r = f32{S} maximum(d, c)']+sc(-3,n='e')+[f'ROOT m = f32{S} multiply(r, e)'])
w('bias_rows_square',ab('f32',m=128)+[dot(m=128),'v = f32[128] parameter(2)','w = f32[128,128] broadcast(v), dimensions={0}','ROOT s = f32[128,128] add(d, w)'])
w('tiny_batch',['a = f32[50,3,2] parameter(0)','b = f32[50,2,4] parameter(1)','ROOT d = f32[50,3,4] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}'])
w('tiny_bf16x3',['a = f32[5,3,2] parameter(0)','b = f32[5,2,4] parameter(1)','ROOT d = f32[5,3,4] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}, algorithm=dot_bf16_bf16_f32_x3'])
w('tiny_f64',ab('f64',2,2,2)+['ROOT '+dot('f64',2,2,2)])
w('mixed_bf16_f32ops',['a = bf16[256,512] parameter(0)','b = f32[512,128] parameter(1)','ROOT '+dot()])
w('mlp',['x = f32[64,784] parameter(0)','w1 = f32[784,512] parameter(1)','b1 = f32[512] parameter(2)','w2 = f32[512,10] parameter(3)','b2 = f32[10] parameter(4)','d1 = f32[64,512] dot(x, w1), lhs_contracting_dims={1}, rhs_contracting_dims={0}','bb1 = f32[64,512] broadcast(b1), dimensions={1}','t1 = f32[64,512] add(d1, bb1)','z = f32[] constant(0)','zb = f32[64,512] broadcast(z), dimensions={}','r1 = f32[64,512] maximum(t1, zb)','d2 = f32[64,10] dot(r1, w2), lhs_contracting_dims={1}, rhs_contracting_dims={0}','bb2 = f32[64,10] broadcast(b2), dimensions={1}','ROOT t2 = f32[64,10] add(d2, bb2)'])
for al in ['dot_f16_f16_f16','dot_f16_f16_f32','dot_bf16_bf16_bf16']:
    ty=al.split('_')[1]
    w('algx_'+al,[f'a = {ty}[8,64,128] parameter(0)',f'b = {ty}[8,128,96] parameter(1)',f'ROOT d = {al.split("_")[3]}[8,64,96] dot(a, b), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}, algorithm={al}'])
w('relu_bitcast',['a = f32[16,32,512] parameter(0)','b = f32[512,128] parameter(1)','d = f32[16,32,128] dot(a, b), lhs_contracting_dims={2}, rhs_contracting_dims={0}','v = f32[128] parameter(2)','wv = f32[16,32,128] broadcast(v), dimensions={2}','sv = f32[16,32,128] add(d, wv)','z = f32[] constant(0)','zb = f32[16,32,128] broadcast(z), dimensions={}','ROOT r = f32[16,32,128] maximum(sv, zb)'])
w('fp8_three',['a = f8e4m3fn[4,32,64] parameter(0)','b = f8e4m3fn[64,128] parameter(1)','d = bf16[4,32,128] dot(a, b), lhs_contracting_dims={2}, rhs_contracting_dims={0}','v = bf16[128] parameter(2)','wv = bf16[4,32,128] broadcast(v), dimensions={2}','ROOT sv = bf16[4,32,128] add(d, wv)'])
