"""Building and measuring candidates in worker processes.

`service.py` is what runs in such a process (`mlc_lab/workers` keeps them), `builder.py` and
`runner.py` are the two roles, `dask_runner.py` measures on a cluster.
"""
