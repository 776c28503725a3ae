import asyncio, sys
from load.chaos.run import run, Plan
from load.chaos.history import read
from load.chaos.checker import check
import time
done = asyncio.run(run(Plan(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))))
print(done)
t=time.time()
v = check(read(done.path))
print(time.time()-t)
for x in v.violations[:20]: print(x)
from collections import Counter
print(Counter(x.rule for x in v.violations))
v.violations=[]
print(v)
