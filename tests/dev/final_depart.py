# depart.py NAME...: first pass of our xla-gpu run (o/NAME) behind which the program is not XLA's
import sys,json,pathlib,re,collections
sys.path.insert(0,'/work/shared/oracle'); sys.path.insert(0,'/tmp/gpu')
import agreement, order
D=pathlib.Path('/tmp/gpu/d')
def norm(p): return p.replace(' ','_')
def theirs(d):
    out=[];cur=sorted(d.glob('*before_optimizations.txt'))[0]
    for p in sorted(d.glob("*.metadata.textproto")):
        for block in p.read_text().split("pass_metadata {")[1:]:
            f=dict(re.findall(r"(\w+): \"?([^\"\n]*)\"?", block))
            names=re.findall(r'dump_filenames: "([^"]*\.txt)"',block)
            if names:
                c=d/pathlib.Path(names[0]).name
                if c.exists(): cur=c
            out.append((norm(f["pipeline_name"]),f["pass_name"],cur))
    return out
def ours(w):
    rec=json.loads((w/'recording.json').read_text()); out=[];cur=None
    for s in rec['stages']:
        if s.get('file') : cur=w/s['file']
        if s['kind']=='pass': out.append((s['pipeline'],s['pass'],cur))
        elif s['kind'] in('pipeline_start','pipeline-start'): out.append((s['pipeline'],'pipeline-start',cur))
    return out
def keyed(l):
    c=collections.Counter();out={}
    for pl,pa,f in l:
        if pa=='pipeline-start': continue
        k=(pl,pa,c[pl,pa]); c[pl,pa]+=1; out[k]=f
    return out
cache={}
def shape(p):
    if p not in cache: cache[p]=agreement.shape_of_program(p.read_text())
    return cache[p]
NEST={'simplification','simplification-2','float_normalization','reshape_mover_after_conv_canonicalization','simplify_after_conv_canonicalization','remove-no-op-reduce-precision-algebraic-simplifier'}
for n in sys.argv[1:]:
    d=D/n/n
    w=pathlib.Path('/tmp/gpu/o')/n
    a,b=keyed(theirs(d)),keyed(ours(w))
    common=[k for k in a if k in b]
    ends={}
    for k in common:
        if k[0] not in NEST: ends[k[0]]=k
    bad=None
    for pl,k in ends.items():
        if shape(a[k])!=shape(b[k]): bad=k;break
        if pl=='fusion': break
    if not bad: print(n,'agrees to fusion');continue
    # passes between the previous good end and this
    i=common.index(bad); j=i
    prev=[k for k in ends.values() if common.index(k)<i]
    j=common.index(prev[-1])+1 if prev else 0
    for k in common[j:i+1]:
        if shape(a[k])!=shape(b[k]):
            print(n,'departs at',k,a[k].name,b[k].name);break
    sys.stdout.flush(); cache.clear()
