import re,pathlib,subprocess,collections,sys
root=pathlib.Path(sys.argv[1]); 
files=subprocess.run(['git','-C',str(root),'ls-files'],capture_output=True,text=True).stdout.split()
src=[f for f in files if f.endswith(('.cc','.h','.def','.inc')) and not f.startswith('docs/')]
S=set(src)
def stem(f): return f.rsplit('.',1)[0]
def inc(f):
    out=[]
    for l in (root/f).read_text().splitlines():
        m=re.match(r'\s*#\s*include\s+"([^"]+)"',l)
        if m:
            t=m.group(1)
            c=[t,'include/'+t,str(pathlib.PurePosixPath(f).parent/t)]
            for x in c:
                if x in S: out.append(x);break
            else: print('unresolved',f,t,file=sys.stderr)
    return out
E={f:inc(f) for f in src}
G=collections.defaultdict(set)
for f in src:
    for t in E[f]:
        if stem(t)!=stem(f): G[stem(f)].add(stem(t))
def scc(nodes,G):
    sys.setrecursionlimit(10000)
    idx={};low={};st=[];on=set();res=[]
    def v(n):
        idx[n]=low[n]=len(idx);st.append(n);on.add(n)
        for m in G[n]:
            if m not in nodes: continue
            if m not in idx: v(m);low[n]=min(low[n],low[m])
            elif m in on: low[n]=min(low[n],idx[m])
        if low[n]==idx[n]:
            c=[]
            while True:
                m=st.pop();on.discard(m);c.append(m)
                if m==n:break
            res.append(c)
    for n in nodes:
        if n not in idx:v(n)
    return res
if __name__=='__main__':
    nodes={stem(f) for f in src}
    for c in scc(nodes,G):
        if len(c)>1: print('SCC',len(c),sorted(c))
    D=collections.defaultdict(lambda: collections.defaultdict(set))
    dirn=lambda s:s.rsplit('/',1)[0]
    for a in G:
        for b in G[a]:
            if dirn(a)!=dirn(b): D[dirn(a)][dirn(b)].add((a,b))
    dn={dirn(s) for s in nodes}
    for c in scc(dn,D):
        if len(c)>1:
            print('DIRCYCLE',c)
            for a in c:
                for b in c:
                    if b in D[a]: print('  ',a,'->',b,len(D[a][b]),sorted(D[a][b])[:4])
