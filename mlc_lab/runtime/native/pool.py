"""The thread pool behind ``T.parallel``.

``mlc_lab_parallel_launch(body, closure, n)`` runs ``body(closure, lo, hi)`` over pieces of
``[0, n)`` on all threads and returns when all of it is done. A launch costs about a microsecond
while the workers are awake: they spin for a fraction of a millisecond after each region before they
sleep on a condition variable.

A region is cut into chunks, four a thread where there are enough iterations. Each chunk has a claim
word. A thread first claims the chunks that are its own by position, so that the same thread touches
the same data in consecutive regions, and then steals from the others, so that a thread which the
system has descheduled delays nobody. A claim word holds twice the number of the region, plus one
when taken: a worker that wakes late compares with the number it saw and cannot claim a chunk of
another region, and the region's fields are read only after a claim has succeeded.

Regions do not nest and do not overlap: a launch from inside a region, or from a second thread while
one runs, runs its whole range on the calling thread.
"""

from __future__ import annotations

from ..llir import FunctionText, ModuleText

MAX_CHUNKS = 1024
_SPINS = 10000  # iterations of a waiting loop before a worker sleeps
_YIELD_AFTER = 2000  # iterations after which it also yields its core
_GLOBALS = """\
@mlc_lab_epoch = internal global i64 0, align 128
@mlc_lab_done = internal global i64 0, align 128
@mlc_lab_job_body = internal global ptr null, align 128
@mlc_lab_job_closure = internal global ptr null
@mlc_lab_job_n = internal global i64 0
@mlc_lab_job_chunks = internal global i64 0
@mlc_lab_job_status = internal global i32 0
@mlc_lab_claims = internal global [1024 x i64] zeroinitializer, align 128
@mlc_lab_busy = internal global i32 0, align 128
@mlc_lab_threads = internal global i64 0, align 128
@mlc_lab_started = internal global i64 0
@mlc_lab_process = internal global i32 0
@mlc_lab_stop = internal global i32 0
@mlc_lab_alive = internal global i64 0, align 128
@mlc_lab_sleepers = internal global i64 0, align 128
@mlc_lab_lock = internal global [128 x i8] zeroinitializer, align 128
@mlc_lab_wake = internal global [128 x i8] zeroinitializer, align 128"""


class _System:
    """What differs between systems: threads, locks, yielding."""

    def __init__(self, m: ModuleText, triple: str) -> None:
        self.windows = "windows" in triple
        self.mac = "darwin" in triple or "macos" in triple
        self.arch = triple.split("-")[0]
        self.m = m
        if self.windows:
            m.declare("ptr", "CreateThread", ["ptr", "i64", "ptr", "ptr", "i32", "ptr"])
            m.declare("void", "AcquireSRWLockExclusive", ["ptr"])
            m.declare("void", "ReleaseSRWLockExclusive", ["ptr"])
            m.declare("i32", "SleepConditionVariableSRW", ["ptr", "ptr", "i32", "i32"])
            m.declare("void", "WakeAllConditionVariable", ["ptr"])
            m.declare("i32", "SwitchToThread", [])
            m.declare("i32", "GetCurrentProcessId", [])
            m.declare("i32", "GetActiveProcessorCount", ["i16"])
            return
        for name in ("pthread_mutex_lock", "pthread_mutex_unlock", "pthread_cond_broadcast"):
            m.declare("i32", name, ["ptr"])
        for name in ("pthread_mutex_init", "pthread_cond_init", "pthread_cond_wait"):
            m.declare("i32", name, ["ptr", "ptr"])
        m.declare("i32", "pthread_create", ["ptr", "ptr", "ptr", "ptr"])
        m.declare("i32", "pthread_detach", ["ptr"])
        m.declare("i32", "sched_yield", [])
        m.declare("i32", "getpid", [])
        m.declare("i64", "sysconf", ["i32"])

    def lock(self, f: FunctionText) -> None:
        name = "AcquireSRWLockExclusive" if self.windows else "pthread_mutex_lock"
        f.do(f"call {'void' if self.windows else 'i32'} @{name}(ptr @mlc_lab_lock)")

    def unlock(self, f: FunctionText) -> None:
        name = "ReleaseSRWLockExclusive" if self.windows else "pthread_mutex_unlock"
        f.do(f"call {'void' if self.windows else 'i32'} @{name}(ptr @mlc_lab_lock)")

    def wait(self, f: FunctionText) -> None:
        if self.windows:
            f.do(
                "call i32 @SleepConditionVariableSRW("
                "ptr @mlc_lab_wake, ptr @mlc_lab_lock, i32 -1, i32 0)"
            )
        else:
            f.do("call i32 @pthread_cond_wait(ptr @mlc_lab_wake, ptr @mlc_lab_lock)")

    def broadcast(self, f: FunctionText) -> None:
        if self.windows:
            f.do("call void @WakeAllConditionVariable(ptr @mlc_lab_wake)")
        else:
            f.do("call i32 @pthread_cond_broadcast(ptr @mlc_lab_wake)")

    def init_locks(self, f: FunctionText) -> None:
        if self.windows:
            for name in ("lock", "wake"):
                f.store("i64", "0", f"@mlc_lab_{name}")
        else:
            f.do("call i32 @pthread_mutex_init(ptr @mlc_lab_lock, ptr null)")
            f.do("call i32 @pthread_cond_init(ptr @mlc_lab_wake, ptr null)")

    def yield_(self, f: FunctionText) -> None:
        f.call("i32", "SwitchToThread" if self.windows else "sched_yield")

    def process(self, f: FunctionText) -> str:
        return f.call("i32", "GetCurrentProcessId" if self.windows else "getpid")

    def cores(self, f: FunctionText) -> str:
        if self.windows:
            return f.op(f"zext i32 {f.call('i32', 'GetActiveProcessorCount', ['i16 -1'])} to i64")
        return f.call("i64", "sysconf", [f"i32 {58 if self.mac else 84}"])

    def start(self, f: FunctionText, index: str) -> str:
        """Start worker ``index`` (an i64); gives an i1: whether that worked."""
        arg = f.op(f"inttoptr i64 {index} to ptr")
        if self.windows:
            handle = f.op(
                "call ptr @CreateThread(ptr null, i64 0, ptr @mlc_lab_worker, "
                f"ptr {arg}, i32 0, ptr null)"
            )
            return f.op(f"icmp ne ptr {handle}, null")
        slot = f.var("ptr")
        code = f.op(
            f"call i32 @pthread_create(ptr {slot}, ptr null, ptr @mlc_lab_worker, ptr {arg})"
        )
        ok = f.op(f"icmp eq i32 {code}, 0")
        with f.if_(ok):
            f.call("i32", "pthread_detach", [f"ptr {f.load('ptr', slot)}"])
        return ok

    def pause(self, f: FunctionText) -> None:
        """Tell the core that this is a waiting loop."""
        if self.arch in ("x86_64", "i686"):
            self.m.declare("void", "llvm.x86.sse2.pause", [])
            f.call("void", "llvm.x86.sse2.pause")
        elif self.arch in ("aarch64", "arm64"):
            self.m.declare("void", "llvm.aarch64.hint", ["i32"])
            f.call("void", "llvm.aarch64.hint", ["i32 1"])


def _get(f: FunctionText, ty: str, name: str, order: str = "monotonic") -> str:
    return f.op(f"load atomic {ty}, ptr @mlc_lab_{name} {order}, align 8")


def _set(f: FunctionText, ty: str, name: str, value: str, order: str = "monotonic") -> None:
    f.do(f"store atomic {ty} {value}, ptr @mlc_lab_{name} {order}, align 8")


def _write_run_chunks(m: ModuleText) -> None:
    """Define the claiming loop: run what chunks of region ``epoch`` thread ``me`` can get."""
    params = [("i64", "me"), ("i64", "epoch")]
    with m.function("void", "mlc_lab_run_chunks", params, "internal") as f:
        threads = _get(f, "i64", "threads")
        with f.if_(f.op(f"icmp sge i64 %me, {threads}")):
            f.ret()
        chunks = _get(f, "i64", "job_chunks")
        first = f.op(f"udiv i64 {f.op(f'mul i64 %me, {chunks}')}, {threads}")
        free = f.op("shl i64 %epoch, 1")
        taken = f.op(f"or i64 {free}, 1")
        with f.for_range("0", chunks) as step:
            at = f.op(f"add i64 {first}, {step}")
            past = f.op(f"icmp uge i64 {at}, {chunks}")
            at = f.op(f"select i1 {past}, i64 {f.op(f'sub i64 {at}, {chunks}')}, i64 {at}")
            claim = f.gep("i64", "@mlc_lab_claims", at)
            got = f.op(f"cmpxchg ptr {claim}, i64 {free}, i64 {taken} acq_rel monotonic, align 8")
            with f.if_(f.op(f"extractvalue {{i64, i1}} {got}, 1")):
                n, body = _get(f, "i64", "job_n"), _get(f, "ptr", "job_body")
                closure = _get(f, "ptr", "job_closure")
                low = f.op(f"udiv i64 {f.op(f'mul i64 {at}, {n}')}, {chunks}")
                high = f.op(f"mul i64 {f.op(f'add i64 {at}, 1')}, {n}")
                high = f.op(f"udiv i64 {high}, {chunks}")
                code = f.op(f"call i32 {body}(ptr {closure}, i64 {low}, i64 {high})")
                with f.if_(f.op(f"icmp ne i32 {code}, 0")):
                    _set(f, "i32", "job_status", code)
                f.op("atomicrmw add ptr @mlc_lab_done, i64 1 acq_rel, align 8")
        f.ret()


def _write_worker(m: ModuleText, system: _System) -> None:
    """Define the loop of a worker: wait for a region, run chunks of it, repeat."""
    with m.function("ptr", "mlc_lab_worker", [("ptr", "arg")], "internal") as f:
        me = f.op("ptrtoint ptr %arg to i64")
        seen = f.var("i64", "0")
        with f.loop():
            last = f.load("i64", seen)
            spins = f.var("i64")
            f.store("i64", "0", spins)
            with f.loop():
                with f.else_(f.op(f"icmp eq i64 {_get(f, 'i64', 'epoch', 'acquire')}, {last}")):
                    f.break_()
                with f.else_(f.op(f"icmp eq i32 {_get(f, 'i32', 'stop', 'acquire')}, 0")):
                    f.break_()
                done = f.load("i64", spins)
                f.store("i64", f.op(f"add i64 {done}, 1"), spins)
                with f.if_(f.op(f"icmp ugt i64 {done}, {_SPINS}")):
                    f.break_()
                with f.if_(f.op(f"icmp ugt i64 {done}, {_YIELD_AFTER}")):
                    with f.if_(f.op(f"icmp eq i64 {f.op(f'and i64 {done}, 63')}, 0")):
                        system.yield_(f)
                system.pause(f)
            with f.if_(f.op(f"icmp eq i64 {_get(f, 'i64', 'epoch', 'acquire')}, {last}")):
                system.lock(f)
                f.op("atomicrmw add ptr @mlc_lab_sleepers, i64 1 seq_cst, align 8")
                with f.loop():
                    # Read after counting itself: either the launch sees a sleeper, or this one
                    # sees the launch.
                    same = f.op(f"icmp eq i64 {_get(f, 'i64', 'epoch', 'seq_cst')}, {last}")
                    with f.else_(same):
                        f.break_()
                    with f.else_(f.op(f"icmp eq i32 {_get(f, 'i32', 'stop', 'seq_cst')}, 0")):
                        f.break_()
                    system.wait(f)
                f.op("atomicrmw sub ptr @mlc_lab_sleepers, i64 1 seq_cst, align 8")
                system.unlock(f)
            with f.else_(f.op(f"icmp eq i32 {_get(f, 'i32', 'stop', 'acquire')}, 0")):
                f.op("atomicrmw sub ptr @mlc_lab_alive, i64 1 seq_cst, align 8")
                f.ret("ptr null")
            epoch = _get(f, "i64", "epoch", "acquire")
            f.store("i64", epoch, seen)
            f.call("void", "mlc_lab_run_chunks", [f"i64 {me}", f"i64 {epoch}"])
        f.do("unreachable")


def _write_ensure(m: ModuleText, system: _System) -> None:
    """Define the start of the workers: at the first launch, after a fork, or for more threads."""
    m.declare("ptr", "getenv", ["ptr"])
    m.declare("i32", "atoi", ["ptr"])
    with m.function("i64", "mlc_lab_default_threads", [], "internal") as f:
        for variable in ("MLC_LAB_NUM_THREADS", "TVM_NUM_THREADS"):
            text = f.call("ptr", "getenv", [f"ptr {m.string(variable)}"])
            with f.else_(f.op(f"icmp eq ptr {text}, null")):
                asked = f.op(f"sext i32 {f.call('i32', 'atoi', [f'ptr {text}'])} to i64")
                with f.if_(f.op(f"icmp sgt i64 {asked}, 0")):
                    f.ret(f"i64 {asked}")
        cores = system.cores(f)
        f.ret(f"i64 {f.op(f'call i64 @llvm.smax.i64(i64 {cores}, i64 1)')}")
    m.declare("i64", "llvm.smax.i64", ["i64", "i64"])
    # Called while this thread has set the busy flag, so no two threads run it at once.
    with m.function("void", "mlc_lab_ensure", [], "internal") as f:
        here = system.process(f)
        with f.else_(f.op(f"icmp eq i32 {f.load('i32', '@mlc_lab_process')}, {here}")):
            # After a fork: of the parent's threads only the one that forked is here.
            system.init_locks(f)
            for name in ("started", "alive", "sleepers"):
                f.store("i64", "0", f"@mlc_lab_{name}")
            f.store("i32", "0", "@mlc_lab_stop")
            f.store("i32", here, "@mlc_lab_process")
        threads = f.load("i64", "@mlc_lab_threads")
        with f.loop():
            started = f.load("i64", "@mlc_lab_started")
            next_ = f.op(f"add i64 {started}, 1")
            with f.else_(f.op(f"icmp slt i64 {next_}, {threads}")):
                f.break_()
            f.op("atomicrmw add ptr @mlc_lab_alive, i64 1 seq_cst, align 8")
            with f.else_(system.start(f, next_)):
                # The system gives no more threads: go on with those there are.
                f.op("atomicrmw sub ptr @mlc_lab_alive, i64 1 seq_cst, align 8")
                f.store("i64", next_, "@mlc_lab_threads")
                f.break_()
            f.store("i64", next_, "@mlc_lab_started")
        f.ret()


def _write_launch(m: ModuleText, system: _System) -> None:
    params = [("ptr", "body"), ("ptr", "closure"), ("i64", "n")]
    with m.function("i32", "mlc_lab_parallel_launch", params) as f:
        with f.if_(f.op("icmp sle i64 %n, 0")):
            f.ret("i32 0")
        with f.if_(f.op(f"icmp eq i64 {_get(f, 'i64', 'threads')}, 0")):
            _set(f, "i64", "threads", f.call("i64", "mlc_lab_default_threads"))
        small = f.op("icmp eq i64 %n, 1")
        one_thread = f.op(f"icmp sle i64 {_get(f, 'i64', 'threads')}, 1")
        serial, parallel = f.new_label("serial"), f.new_label("parallel")
        attempt = f.new_label("attempt")
        f.cond_br(f.op(f"or i1 {small}, {one_thread}"), serial, attempt)
        f.label(attempt)
        acquired = f.op("cmpxchg ptr @mlc_lab_busy, i32 0, i32 1 acquire monotonic, align 4")
        f.cond_br(f.op(f"extractvalue {{i32, i1}} {acquired}, 1"), parallel, serial)
        f.label(serial)
        f.ret(f"i32 {f.op('call i32 %body(ptr %closure, i64 0, i64 %n)')}")
        f.label(parallel)
        f.call("void", "mlc_lab_ensure")
        threads = _get(f, "i64", "threads")
        most = f.op(f"shl i64 {threads}, 2")
        over = f.op(f"icmp ugt i64 {most}, {MAX_CHUNKS}")
        most = f.op(f"select i1 {over}, i64 {MAX_CHUNKS}, i64 {most}")
        fewer = f.op(f"icmp ult i64 %n, {most}")
        chunks = f.op(f"select i1 {fewer}, i64 %n, i64 {most}")
        epoch = f.op(f"add i64 {_get(f, 'i64', 'epoch')}, 1")
        free = f.op(f"shl i64 {epoch}, 1")
        _set(f, "ptr", "job_body", "%body")
        _set(f, "ptr", "job_closure", "%closure")
        _set(f, "i64", "job_n", "%n")
        _set(f, "i64", "job_chunks", chunks)
        _set(f, "i32", "job_status", "0")
        _set(f, "i64", "done", "0")
        with f.for_range("0", chunks) as i:
            claim = f.gep("i64", "@mlc_lab_claims", i)
            f.do(f"store atomic i64 {free}, ptr {claim} monotonic, align 8")
        _set(f, "i64", "epoch", epoch, "seq_cst")
        with f.else_(f.op(f"icmp eq i64 {_get(f, 'i64', 'sleepers', 'seq_cst')}, 0")):
            system.lock(f)
            system.broadcast(f)
            system.unlock(f)
        f.call("void", "mlc_lab_run_chunks", ["i64 0", f"i64 {epoch}"])
        waited = f.var("i64", "0")
        with f.loop():
            done = _get(f, "i64", "done", "acquire")
            with f.if_(f.op(f"icmp eq i64 {done}, {chunks}")):
                f.break_()
            rounds = f.load("i64", waited)
            f.store("i64", f.op(f"add i64 {rounds}, 1"), waited)
            with f.if_(f.op(f"icmp ugt i64 {rounds}, {_YIELD_AFTER}")):
                system.yield_(f)
            system.pause(f)
        status = _get(f, "i32", "job_status")
        f.do("store atomic i32 0, ptr @mlc_lab_busy release, align 4")
        f.ret(f"i32 {status}")


def write(m: ModuleText, triple: str) -> None:
    """Define the pool: launch, set the number of threads, stop."""
    m.globals.append(_GLOBALS)
    system = _System(m, triple)
    _write_run_chunks(m)
    _write_worker(m, system)
    _write_ensure(m, system)
    _write_launch(m, system)
    with m.function("void", "mlc_lab_pool_set_threads", [("i64", "n")]) as f:
        _set(f, "i64", "threads", "%n")
        f.ret()
    # At exit: let the workers leave this code before it can be unmapped.
    with m.function("void", "mlc_lab_pool_stop", []) as f:
        same = f.op(f"icmp eq i32 {f.load('i32', '@mlc_lab_process')}, {system.process(f)}")
        with f.else_(same):
            f.ret()
        _set(f, "i32", "stop", "1", "seq_cst")
        system.lock(f)
        system.broadcast(f)
        system.unlock(f)
        # Bounded: a worker stuck in a kernel must not keep the process from ending.
        with f.for_range("0", "200000"):
            with f.if_(f.op(f"icmp sle i64 {_get(f, 'i64', 'alive', 'seq_cst')}, 0")):
                f.break_()
            system.yield_(f)
        # The next launch starts workers again.
        f.store("i32", "0", "@mlc_lab_process")
        f.ret()
