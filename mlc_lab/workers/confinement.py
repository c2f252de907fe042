"""What a process may no longer do once it runs a function that somebody handed in.

`confine` takes rights from the process that calls it, for good:

    everywhere      limits of the system on processor time, memory, sizes of files, processes
                    (of users other than root) and open files
    Linux           no capabilities, and nothing gives new rights (`no_new_privs`)
    Linux, Landlock reading only what Python and this package consist of, and what `readable` names
    Linux on x86-64 and AArch64
                    a filter of system calls: no new process or thread, no other program, no
                    network, no signal to a process, no look into one, no file written, made,
                    changed or removed

What a system does not have is left out; `confine` says what was put in place. This is no virtual
machine: it does not protect from a mistake in the kernel, nor from what a function finds out by
reading what it may read (docs/safety.md). Only the standard library is used, so that the process
starts quickly.

Numbers of system calls and structures: the headers of Linux (`asm/unistd.h`, `linux/filter.h`,
`linux/seccomp.h`, `linux/landlock.h`).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import struct
import sys
from collections.abc import Iterable

#: system calls that are refused: name -> number on x86-64 and on AArch64 (None: there is none)
REFUSED: dict[str, tuple[int | None, int | None]] = {
    "clone": (56, 220), "fork": (57, None), "vfork": (58, None), "execve": (59, 221),
    "execveat": (322, 281), "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "pidfd_send_signal": (424, 424),
    "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "process_madvise": (440, 440),
    "kcmp": (312, 272), "socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203),
    "bind": (49, 200), "setpgid": (109, 154), "setsid": (112, 157), "prlimit64": (302, 261),
    "setrlimit": (160, 164), "setpriority": (141, 140), "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119), "sched_setattr": (314, 274), "ioprio_set": (251, 30),
    "creat": (85, None), "unlink": (87, None), "unlinkat": (263, 35), "rename": (82, None),
    "renameat": (264, 38), "renameat2": (316, 276), "mkdir": (83, None), "mkdirat": (258, 34),
    "rmdir": (84, None), "link": (86, None), "linkat": (265, 37), "symlink": (88, None),
    "symlinkat": (266, 36), "mknod": (133, None), "mknodat": (259, 33), "chmod": (90, None),
    "fchmod": (91, 52), "fchmodat": (268, 53), "chown": (92, None), "fchown": (93, 55),
    "lchown": (94, None), "fchownat": (260, 54), "truncate": (76, 45), "ftruncate": (77, 46),
    "fallocate": (285, 47), "utime": (132, None), "utimes": (235, None), "utimensat": (280, 88),
    "futimesat": (261, None), "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194),
    "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "bpf": (321, 280), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "add_key": (248, 217), "request_key": (249, 218),
    "keyctl": (250, 219), "mount": (165, 40), "umount2": (166, 39), "unshare": (272, 97),
    "setns": (308, 268), "chroot": (161, 51), "pivot_root": (155, 41), "personality": (135, 92),
    "inotify_init": (253, None), "inotify_init1": (294, 26), "fanotify_init": (300, 262),
    "open_by_handle_at": (304, 265),
}
#: those that libc does without, in an older way, where they are not there
ABSENT = {"clone3": (435, 435), "openat2": (437, 437), "fchmodat2": (452, 452)}
#: opening a file: number, and which argument has the flags; what writes is refused
OPENING = {"open": ((2, None), 1), "openat": ((257, 56), 2)}
#: O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_APPEND
WRITING = 0o1 | 0o2 | 0o100 | 0o1000 | 0o2000

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_NO_NEW_PRIVS, _SET_SECCOMP, _SET_DUMPABLE = 38, 22, 4
_CAPSET = {"x86_64": 126, "aarch64": 91}
#: instructions of the filter: load a word, jump if equal, at least, any bit set; return
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000


def confine(seconds: float, memory: int, readable: Iterable[str] = (),
            listed: Iterable[str] = ()) -> list[str]:
    """Give up rights; which ways to do so were there: "limits", "capabilities", "files", "calls".

    Parameters
    ----------
    seconds : processor time from now on.
    memory : bytes of address space beyond what the process has.
    readable : folders and files that can be read, where Landlock is there.
    listed : folders of which just the names in them can be read.
    """
    done = ["limits"] if _limits(seconds, memory) else []
    machine = os.uname().machine if sys.platform == "linux" else ""
    if machine not in _ARCHITECTURES or sys.maxsize < 1 << 32:
        return done
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return done
    for name, act in (("files", lambda: _landlock(libc, readable, listed)),
                      ("capabilities", lambda: _no_capabilities(libc, machine)),
                      ("calls", lambda: _filter(libc, machine))):
        with contextlib.suppress(OSError):
            act()
            done.append(name)
    return done


def keep_others_out() -> None:
    """Let no other process of this user read or change this one's memory, on Linux."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def _limits(seconds: float, memory: int) -> bool:
    try:
        import resource
    except ImportError:  # Windows
        return False
    used = resource.getrusage(resource.RUSAGE_SELF)
    end = int(used.ru_utime + used.ru_stime + seconds + 0.999)
    size = memory
    with contextlib.suppress(OSError, ValueError), open("/proc/self/statm") as file:
        size += int(file.read().split()[0]) * resource.getpagesize()
    for name, soft, hard in (("CPU", end, end + 1), ("AS", size, size), ("FSIZE", 1 << 20, 1 << 20),
                             ("NPROC", 0, 0), ("CORE", 0, 0), ("NOFILE", 64, 64)):
        kind = getattr(resource, f"RLIMIT_{name}", None)
        if kind is not None:
            with contextlib.suppress(OSError, ValueError):
                most = resource.getrlimit(kind)[1]
                if most != resource.RLIM_INFINITY:
                    soft, hard = min(soft, most), min(hard, most)
                resource.setrlimit(kind, (soft, hard))
    return True


def _no_capabilities(libc: ctypes.CDLL, machine: str) -> None:
    header = struct.pack("<Ii", 0x20080522, 0)
    _checked(libc.syscall(_CAPSET[machine], header, bytes(24)))


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _landlock(libc: ctypes.CDLL, readable: Iterable[str], listed: Iterable[str]) -> None:
    """Files and folders other than those named can no longer be opened."""
    execute, read_file, read_folder = 1, 1 << 2, 1 << 3
    every = execute | read_file | read_folder
    rules = _checked(libc.syscall(444, struct.pack("<Q", every), ctypes.c_size_t(8), 0))
    try:
        for path, kept in [*((p, every) for p in readable), *((p, read_folder) for p in listed)]:
            try:
                opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue
            rights = kept & (read_file | read_folder if os.path.isdir(path) else read_file)
            try:
                _checked(libc.syscall(445, rules, 1, struct.pack("<Qi", rights, opened), 0))
            finally:
                os.close(opened)
        _checked(libc.syscall(446, rules, 0))
    finally:
        os.close(rules)


def program(machine: str) -> bytes:
    """The filter of system calls, in the form of a socket filter: 8 bytes an instruction."""
    column, architecture = _ARCHITECTURES[machine]
    refuse, absent = _ERRNO | errno.EPERM, _ERRNO | errno.ENOSYS
    out = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _KILL),
           (_LOAD, 0, 0, 0), (_AT_LEAST, 0, 1, 1 << 30), (_RETURN, 0, 0, refuse)]
    for table, answer in ((REFUSED, refuse), (ABSENT, absent)):
        for numbers in table.values():
            if numbers[column] is not None:
                out += [(_EQUAL, 0, 1, numbers[column]), (_RETURN, 0, 0, answer)]
    for numbers, argument in OPENING.values():
        if numbers[column] is not None:
            out += [(_EQUAL, 0, 4, numbers[column]), (_LOAD, 0, 0, 16 + 8 * argument),
                    (_ANY_BIT, 0, 1, WRITING), (_RETURN, 0, 0, refuse), (_RETURN, 0, 0, _ALLOW)]
    out.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in out)


def _filter(libc: ctypes.CDLL, machine: str) -> None:
    code = ctypes.create_string_buffer(program(machine))
    header = struct.pack("<H6xQ", (len(code) - 1) // 8, ctypes.addressof(code))
    _checked(libc.prctl(_SET_SECCOMP, 2, header, 0, 0))


__all__ = ["confine", "keep_others_out"]
