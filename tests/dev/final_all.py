# final_all.py TOOL OUT.json [NAME...]: our xla-gpu from before_optimizations.hlo.pb to behind fusion, share against XLA's.
import sys,json,subprocess,pathlib,shutil,collections,time,re
sys.path.insert(0,'/work/shared/oracle'); sys.path.insert(0,'/tmp/gpu')
import final, order
tool=sys.argv[1]; out={}
D=pathlib.Path('/tmp/gpu/d')
names=sys.argv[3:] or sorted(p.name for p in D.iterdir() if p.is_dir())
def share(a,b):
    a,b=(collections.Counter(final.kernels(x)) for x in (a,b))
    both=sum((a&b).values()); n=sum(a.values())+sum(b.values())
    return 2*both/max(1,n), sum(a.values()), sum(b.values()), both
for n in names:
    d=D/n/n
    if not d.exists(): d=D/n
    src=sorted(d.glob('*before_optimizations.hlo.pb'))[0]
    w=pathlib.Path('/tmp/gpu/o')/n
    shutil.rmtree(w,ignore_errors=True); w.parent.mkdir(exist_ok=True)
    t=time.time()
    r=subprocess.run(['nice',tool,'replay',str(src),'--pipeline=xla-gpu','--formats=text','--no-verify','--force-replay','--stop-after=convert_triton_gemm_config_or_end' if 0 else '--json','-o',str(w)],capture_output=True,text=True)
    row={'rc':r.returncode,'s':round(time.time()-t,1),'err':r.stderr[-300:]}
    out[n]=row
    if r.returncode==0:
        ours=sorted(w.glob('*.txt'))
        # state behind fusion: the last of ours numbered before post-fusion
        def last(pipes):
            rec=json.loads(r.stdout)
            f=None
            for s in rec['stages']:
                if s.get('pipeline') in pipes: break
                if s.get('file'): f=s['file']
            return w/f
        theirs=sorted(d.glob('*post-fusion_optimization.after_pipeline-start*.txt'))[0]
        mine=last({'post-fusion_optimization'})
        row['fusion']=share(mine.read_text(),theirs.read_text()); row['mine']=str(mine); row['theirs']=str(theirs)
    print(n,row.get('fusion'),row['rc'],row['s'],row['err'][:200] if row['rc'] else '',flush=True)
    json.dump(out,open(sys.argv[2],'w'),indent=1)
v=[r['fusion'][0] if 'fusion' in r else 0 for r in out.values()]
print('mean',sum(v)/len(v),len(v))
