"""Building and measuring candidates in worker processes.

`worker.py` is what runs in such a process, `pool.py` keeps the processes, `builder.py` and
`runner.py` are the two roles, `dask_runner.py` measures on a cluster.
"""
