"""A database: the programs that were tuned, the records of the trials, what is asked of them."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...above import above
from ...ir.module import IRModule
from ...reading import MISTAKES, reason
from ...schedule import Schedule, Trace
from ..workload import TensorInfo, Workload, as_workload, coarse_key, text_key
from .file import DatabaseError
from .record import COLUMNS, TuningRecord, times_of, with_derived
from .sessions import SessionLog, columns_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from ...target.target import Target
    from ...tir.function import PrimFunc


class Database(SessionLog):
    """A database of tuning records. `with database:` makes it the one that is asked by default.

    `Database.create("sqlite", path)` or `("memory")`, or the classes of `kinds.py`. All methods
    may be called from several threads and processes; they raise DatabaseError where the file
    cannot be read or written.
    """

    _current: list["Database"] = []
    _kinds: dict[str, type["Database"]] = {}

    def __init__(self, path: str = ":memory:") -> None:
        super().__init__(path)
        self._known: dict[str, Workload] = {}

    def __init_subclass__(cls, kind: str | None = None) -> None:
        """`kind` is the name `create` knows the class by."""
        if kind is not None:
            Database._kinds[kind] = cls

    # ------------------------------------------------------------------ workloads

    def _find(self, mod: IRModule) -> Workload | None:
        key = text_key(mod)
        if key in self._known:
            return self._known[key]
        row = self._one("SELECT key, module FROM workloads WHERE key=?", (key,))
        if row is not None:
            found = self._known[key] = Workload(mod, key)
            return found
        rows = self._all("SELECT key, module FROM workloads WHERE coarse=?", (coarse_key(mod),))
        for row in rows:
            try:
                other = self._workload(row["key"], row["module"])
            except DatabaseError:  # that entry is damaged; another one may match
                continue
            if other.same(mod):
                return other
        return None

    def _workload(self, key: str, text: str | None = None) -> Workload:
        if key not in self._known:
            if text is None:
                row = self._one("SELECT module FROM workloads WHERE key=?", (key,))
                if row is None:
                    raise DatabaseError(f"{self.path} has no program {key}: it is damaged")
                text = row["module"]
            try:
                self._known[key] = Workload.from_json([key, text])
            except MISTAKES as error:
                raise DatabaseError(f"the program {key} in {self.path} is damaged "
                                    f"({reason(error)})") from None
        return self._known[key]

    def has_workload(self, mod: IRModule | PrimFunc) -> bool:
        """Whether the program is known."""
        return self._find(as_workload(mod)) is not None

    def commit_workload(self, mod: IRModule | PrimFunc) -> Workload:
        """The program's entry, made if there is none."""
        from ...ir.serialize import save_json

        mod = as_workload(mod)
        found = self._find(mod)
        if found is None:
            found = Workload(mod)
            self._do("INSERT OR IGNORE INTO workloads VALUES (?, ?, ?, ?)",
                     (found.shash, coarse_key(mod), "main", save_json(mod)))
            self._known[found.shash] = found
        return found

    # ------------------------------------------------------------------ records

    def commit_tuning_record(self, record: TuningRecord) -> int:
        """Add a record; returns its id. It is on disk when this returns."""
        record.created = record.created or time.time()
        data = {name: getattr(record, name, None) for name in COLUMNS if name != "id"}
        data.update(workload=record.workload.shash, target=str(record.target),
                    trace_json=json.dumps(record.trace.as_json()),
                    times=json.dumps(list(record.times)), time=record.time)
        names = ", ".join(data)
        marks = ", ".join("?" * len(data))
        cursor = self._do(f"INSERT INTO records ({names}) VALUES ({marks})", list(data.values()))
        record.id = ident = cursor.lastrowid or 0  # they count from 1
        return ident

    def revise_tuning_record(self, record: TuningRecord) -> None:
        """Put what was measured anew, times and status, in the place of what a record said."""
        self._do("UPDATE records SET times=?, time=?, status=?, reason=? WHERE id=?",
                 [json.dumps(list(record.times)), record.time, record.status, record.reason,
                  record.id])

    def _records(self, where: str, values: Sequence[Any], limit: int | None = None
                 ) -> list[TuningRecord]:
        sql = f"SELECT * FROM records {where}" + (f" LIMIT {int(limit)}" if limit else "")
        return self._good(self._all(sql, values), self._record)

    def _good(self, rows: list, make: Callable[[dict], Any]) -> list:
        """`make(columns)` of every record that is not damaged; a warning counts the others."""
        out: list = []
        for row in rows:
            try:
                out.append(make(columns_of(row, "records", self.path)))
            except MISTAKES as error:
                last = reason(error)
        if len(out) < len(rows):
            warnings.warn(f"{len(rows) - len(out)} of {len(rows)} records of {self.path} are "
                          f"damaged and left out (the last: {last})", stacklevel=4)
        return out

    def _record(self, columns: dict) -> TuningRecord:
        workload = self._workload(columns["workload"])
        fields = {n: columns[n] for n in COLUMNS if n not in ("trace_json", "times", "workload")}
        return TuningRecord(
            Trace.from_json(columns["trace_json"]), workload, times=times_of(columns["times"]),
            args_info=TensorInfo.from_prim_func(workload.mod["main"]), **fields)

    def get_all_tuning_records(self) -> list[TuningRecord]:
        """Every record, in the order they were made."""
        return self._records("ORDER BY id", ())

    def get_top_k(self, workload: object, top_k: int, target: Target | str | None = None
                  ) -> list[TuningRecord]:
        """The fastest `top_k` records of a program (a Workload or a module), best first."""
        workload = self._as_workload(workload)
        if workload is None or top_k <= 0:
            return []
        more, values = ("AND target=? ", [str(target)]) if target is not None else ("", [])
        return self._records(f"WHERE workload=? {more}AND time IS NOT NULL AND status='ok' "
                             "ORDER BY time, id", [workload.shash, *values], top_k)

    def fastest(self, workload: object, top_k: int, target: Target | str | None = None
                ) -> list[TuningRecord]:
        """What `get_top_k` answers, for callers here: it may be overridden without a target."""
        return self.get_top_k(workload, top_k, target)

    def _as_workload(self, workload: object) -> Workload | None:
        return workload if isinstance(workload, Workload) else self._find(as_workload(workload))

    def query_all(self, workload: object = None, target: Target | str | None = None
                  ) -> list[TuningRecord]:
        """Every record, of one program or for one target if given."""
        conditions, values = [], []
        if workload is not None:
            found = self._as_workload(workload)
            if found is None:
                return []
            conditions.append("workload=?")
            values.append(found.shash)
        if target is not None:
            conditions.append("target=?")
            values.append(str(target))
        where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
        return self._records(where + "ORDER BY id", values)

    def query_best(self, workload: object, target: Target | str | None = None
                   ) -> TuningRecord | None:
        """The fastest record of a program; None if there is none."""
        best = self.fastest(workload, 1, target)
        return best[0] if best else None

    def query_tuning_record(self, mod: IRModule | PrimFunc, target: Target | str | None,
                            workload_name: str = "main") -> TuningRecord | None:
        """The fastest record for a target; where there is none, one for a target of that kind."""
        from ...target import Target

        target = Target(target)
        best = self.query_best(mod, str(target))
        if best is None:
            alike = (r for r in self.fastest(mod, 1 << 20)
                     if Target(r.target).kind.name == target.kind.name)
            best = next(alike, None)
        return best

    def query_schedule(self, mod: IRModule | PrimFunc, target: Target | str | None,
                       workload_name: str = "main") -> Schedule | None:
        """The fastest schedule for a target; None if there is none."""
        record = self.query_tuning_record(mod, target, workload_name)
        if record is None:
            return None
        sch = Schedule(as_workload(mod))
        record.trace.apply_to_schedule(sch)
        return sch

    def query_ir_module(self, mod: IRModule | PrimFunc, target: Target | str | None,
                        workload_name: str = "main") -> IRModule | None:
        """The fastest module for a target; None if there is none."""
        sch = self.query_schedule(mod, target, workload_name)
        return sch.mod if sch is not None else None

    def query(self, mod: IRModule | PrimFunc, target: Target | str | None, *,
              workload_name: str = "main", kind: str = "schedule") -> Any:
        """The best "schedule", "record" or "ir_module"; None if there is none.

        Raises ValueError for another `kind`.
        """
        how = {"schedule": self.query_schedule, "record": self.query_tuning_record,
               "ir_module": self.query_ir_module}
        if kind not in how:
            raise ValueError(f"kind is one of {', '.join(how)}, not {kind!r}")
        return how[kind](mod, target, workload_name)

    def records(self, task: str | None = None, session: int | None = None,
                since: int = 0) -> list[dict[str, Any]]:
        """The records as plain data, see `record.py`; `since` is an id to go on from."""
        conditions = ["id>?"]
        values: list[Any] = [since]
        for name, value in (("task", task), ("session", session)):
            if value is not None:
                conditions.append(f"{name}=?")
                values.append(value)
        rows = self._all(f"SELECT * FROM records WHERE {' AND '.join(conditions)} ORDER BY id",
                         values)
        return self._good(rows, lambda columns: with_derived(
            {**columns, "times": list(times_of(columns["times"]))}))

    def module(self, workload: str) -> IRModule:
        """The program of a key. Raises DatabaseError if there is none."""
        return self._workload(workload).mod

    def schedule(self, record_id: int) -> Schedule:
        """The schedule of a record, its trace replayed step by step (for the stepper).

        Raises ValueError if there is no such record.
        """
        rows = self._records("WHERE id=?", (record_id,))
        if not rows:
            raise ValueError(f"there is no record {record_id} in {self.path}")
        return rows[0].as_schedule()

    def __len__(self) -> int:
        return self._one("SELECT COUNT(*) FROM records")[0]

    def __bool__(self) -> bool:
        return True

    # ------------------------------------------------------------------ views and copies

    def board(self, task: str | None = None, **options: object) -> Any:
        """The tuning board of what is in here: charts of the searches, each trial's trace, editing
        and measuring of decisions. See `mlc_lab.meta_schedule.board.Board` for the options."""
        return above("tuning board")(self, task, **options)

    def dump_pruned(self, destination: "Database") -> None:
        """Copy the best record of each program and target to another database."""
        seen = set()
        for record in sorted((r for r in self.get_all_tuning_records() if r.time),
                             key=lambda r: r.time or 0.0):
            key = (record.workload.shash, str(record.target))
            if key not in seen:
                seen.add(key)
                record.workload = destination.commit_workload(record.workload.mod)
                destination.commit_tuning_record(record)

    # ------------------------------------------------------------------ the current one

    def __enter__(self) -> "Database":
        Database._current.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        Database._current.remove(self)

    @staticmethod
    def current() -> "Database | None":
        """The database of the innermost `with database:`."""
        return Database._current[-1] if Database._current else None

    @staticmethod
    def create(kind: str | Database = "sqlite", *args: Any, **options: Any) -> "Database":
        """A database by kind: "sqlite" with a path, "json" with two, "memory", "union".

        The other arguments are those of its class. Raises ValueError for another kind.
        """
        if isinstance(kind, Database):
            return kind
        if kind not in Database._kinds:
            raise ValueError(f"there is no database {kind!r}; choose one of "
                             f"{', '.join(Database._kinds)}")
        return Database._kinds[kind](*args, **options)


__all__ = ["Database"]
