"""The database of a search: every candidate that was tried, with its trace and what came of it.

    record.py    one trial: `TuningRecord`, and its fields as plain data
    sessions.py  the searches that made the trials
    database.py  `Database`: programs, records and what is asked of them
    file.py      the SQLite file under it: its tables, and what can go wrong with it
    kinds.py     databases on disk, in memory, or several asked as one
    json_file.py two files of JSON lines

A database is one file (write-ahead log: several processes may share it, and a killed one loses
nothing), two files of JSON, or lives in memory.
"""

from ..workload import Workload
from .database import Database
from .file import SCHEMA, DatabaseError
from .json_file import JSONDatabase
from .kinds import (
    MemoryDatabase,
    OrderedUnionDatabase,
    PyDatabase,
    ScheduleFnDatabase,
    SQLiteDatabase,
    UnionDatabase,
    create,
)
from .record import TuningRecord

__all__ = ["SCHEMA", "Database", "DatabaseError", "JSONDatabase", "MemoryDatabase",
           "OrderedUnionDatabase", "PyDatabase", "SQLiteDatabase", "ScheduleFnDatabase",
           "TuningRecord", "UnionDatabase", "Workload", "create"]
