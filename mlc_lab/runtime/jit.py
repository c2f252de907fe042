"""LLVM: from IR text to object code, for this machine and others.

``linking.py`` puts the object code into executable memory.
"""

from __future__ import annotations

import functools
import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

__all__ = ["Compiled", "Machine", "binding", "compile_ir", "host_cpu", "host_machine", "machine"]


@functools.cache
def binding() -> Any:
    """llvmlite's binding, with the host's code generator ready; imported on first use."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    if llvm.llvm_version_info[0] == 22:
        # The SLP vectorizer of LLVM 22 treats an element that is missing from a bundle as a copy,
        # and does not always schedule it: an assertion then ends the process. Other versions may
        # not have the option, and LLVM ends the process for one that it does not know.
        llvm.set_option("mlc_lab", "--slp-copyable-elements=false")
    return llvm


@functools.cache
def _all_targets() -> None:
    llvm = binding()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@functools.cache
def host_cpu() -> tuple[str, str, str]:
    """The host's (triple, processor name, features), as LLVM detects them."""
    llvm = binding()
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), _host_features()


def _host_features() -> str:
    features = binding().get_host_cpu_features()
    return features.flatten()


@dataclass(frozen=True)
class Machine:
    """What code is generated for. Empty ``cpu`` and ``features`` mean the triple's baseline."""

    triple: str
    cpu: str
    features: str
    opt_level: int = 3
    abi: str = ""

    @functools.cached_property
    def is_host(self) -> bool:
        """Whether code for this machine can run in this process."""
        here = host_cpu()[0].split("-")
        there = self.triple.split("-")
        same_system = any(s in "-".join(there[1:]) for s in _system_words("-".join(here[1:])))
        return here[0] == there[0] and same_system and "elf" not in there[-1:]

    @functools.cached_property
    def target_machine(self) -> Any:
        """The LLVM target machine. Raises ValueError for a triple LLVM does not know."""
        return self._make(jit=False)

    def linker_machine(self) -> Any:
        """A target machine of LLVM for a linker, which keeps it."""
        return self._make(jit=True)

    def at(self, opt_level: int) -> Machine:
        """This machine with another level of optimisation in its code generator."""
        return machine(self.triple, self.cpu, self.features, opt_level, self.abi)

    def _make(self, jit: bool) -> Any:
        llvm = binding()
        if self.triple.split("-")[0] != host_cpu()[0].split("-")[0]:
            _all_targets()
        try:
            target = llvm.Target.from_triple(self.triple)
        except RuntimeError as error:
            raise ValueError(
                f"LLVM has no code generator for the triple {self.triple!r}: {error}"
            ) from None
        # JIT-compiled code on Windows has to be ELF, with the far-reaching code model.
        windows = os.name == "nt" and self.is_host

        def make() -> Any:
            return target.create_target_machine(
                cpu=self.cpu,
                features=self.features,
                opt=self.opt_level,
                reloc="default" if windows else "pic",
                codemodel="jitdefault" if windows else "default",
                jit=jit,
                abiname=self.abi,
            )

        if not self.cpu or self.cpu == host_cpu()[1]:
            return make()
        made, warning = _with_stderr(make)
        if "is not a recognized processor" in warning:
            raise ValueError(
                f"LLVM knows no processor {self.cpu!r} for {self.triple}; its names are such as "
                "'skylake', 'znver3' or 'apple-m1'. Without -mcpu, code is for this computer"
            )
        if warning:  # another one, such as of a feature
            os.write(2, warning.encode())
        return made

    @functools.cached_property
    def data_layout(self) -> str:
        """The data layout string, without which LLVM guesses sizes and alignments."""
        return str(self.target_machine.target_data)


#: held while standard error is redirected
_lock = threading.Lock()


def _with_stderr(make: Callable[[], Any]) -> tuple[Any, str]:
    """What `make` gives, and what LLVM writes to standard error meanwhile.

    LLVM only warns of a processor that it does not know, and aborts later when it generates code
    for it.
    """
    with _lock:
        try:
            saved = os.dup(2)
        except OSError:  # there is no standard error
            return make(), ""
        try:
            with tempfile.TemporaryFile() as file:
                os.dup2(file.fileno(), 2)
                try:
                    made = make()
                finally:
                    os.dup2(saved, 2)
                file.seek(0)
                return made, file.read().decode(errors="replace")
        finally:
            os.close(saved)


def _system_words(rest: str) -> tuple[str, ...]:
    for words in (("linux",), ("darwin", "macos"), ("windows",), ("freebsd",)):
        if any(word in rest for word in words):
            return words
    return (rest,)


@functools.cache
def machine(triple: str, cpu: str = "", features: str = "", opt: int = 3, abi: str = "") -> Machine:
    """The machine of a triple, kept for the process."""
    return Machine(triple, cpu, features, opt, abi)


def host_machine(opt: int = 3) -> Machine:
    """This computer, with all features of its processor."""
    return machine(*host_cpu(), opt)


#: one thread at a time asks for comments
_verbose = threading.Lock()


class Compiled:
    """One compiled module: its object code, and its optimised IR and assembly on demand."""

    def __init__(self, bitcode: bytes, obj: bytes | None, where: Machine) -> None:
        self._bitcode = bitcode
        self._obj = obj
        self.machine = where

    @property
    def obj(self) -> bytes:
        """The object code."""
        if self._obj is None:
            try:
                with _context() as parse:
                    self._obj = self.machine.target_machine.emit_object(parse(self._bitcode))
            except RuntimeError as err:
                raise ValueError(
                    f"LLVM writes no object code for {self.machine.triple} ({err}); what there is "
                    'to see is get_source("asm") and get_source("ll")') from None
        return self._obj

    @property
    def ll(self) -> str:
        """The optimised LLVM IR."""
        with _context() as parse:
            return str(parse(self._bitcode))

    @property
    def asm(self) -> str:
        """The assembly."""
        with _context() as parse:
            return self.machine.target_machine.emit_assembly(parse(self._bitcode))

    @property
    def commented_asm(self) -> str:
        """The assembly with what LLVM says in comments: loops and their depths, spills."""
        machine = self.machine.target_machine
        with _verbose, _context() as parse:
            machine.set_asm_verbosity(True)
            try:
                return machine.emit_assembly(parse(self._bitcode))
            finally:
                machine.set_asm_verbosity(False)

    def global_variable(self, name: str) -> str:
        """The IR of a global variable. Raises NameError where there is none."""
        with _context() as parse:
            return str(parse(self._bitcode).get_global_variable(name))


@contextmanager
def _context() -> Iterator[Callable[[str | bytes], Any]]:
    """A context of LLVM's, as the function that parses IR or bitcode in it.

    It and its modules are freed at the end. Python's garbage collector (where a traceback or a
    profiler keeps the frame in a cycle) may free the context before a module, which crashes.
    """
    llvm = binding()
    context = llvm.create_context()
    modules: list[Any] = []

    def parse(code: str | bytes) -> Any:
        make = llvm.parse_assembly if isinstance(code, str) else llvm.parse_bitcode
        modules.append(make(code, context))
        return modules[-1]

    try:
        yield parse
    finally:
        for module in modules:
            module.close()
        context.close()


def compile_ir(
    text: str,
    where: Machine | None = None,
    vectorize: bool = True,
    unroll: bool = True,
    level: int = 3,
    emit: bool = True,
    imports: Iterable[str] = (),
) -> Compiled:
    """Optimise IR text with LLVM's standard pipeline and generate object code.

    ``vectorize`` and ``unroll`` switch LLVM's own loop transformations; ``level`` is no more than
    that of the machine's code generator: LLVM's instruction selection at level 0 aborts on some
    programs that its passes have vectorized (seen with 22.1). Level 0 only promotes variables to
    registers, as is done for programs with more than ``_LONG_BLOCK`` instructions in a basic block,
    and with more than ``_MANY_CHOICES`` branches and constants.
    Nothing is vectorized where a function has more than ``_MANY_LOOPS`` loops.
    Raises ValueError with LLVM's message when the text is not valid IR.
    """
    where = where or host_machine()
    level = min(level, where.opt_level)
    if len(text) > 20 * _LONG_BLOCK and _longest_block(text) > _LONG_BLOCK or _many_choices(text):
        level, where = 0, where.at(0)
    vectorize = vectorize and _most_loops(text) <= _MANY_LOOPS
    imports = list(imports)
    tm = where.target_machine
    # LLVM's SLP vectorizer can leave a use before its definition (seen with 22.1 for unrolled
    # loops), and generating code from that would crash.
    for slp, opt in ((vectorize, level), (False, level), (False, 0)):
        with _context() as parse:
            module = _parsed(parse, text, imports)
            _optimise(module, where, opt, vectorize, slp, unroll)
            try:
                module.verify()
            except RuntimeError as error:
                fault = str(error)
            else:
                bitcode = module.as_bitcode()
                return Compiled(bitcode, tm.emit_object(module) if emit else None, where)
    raise ValueError(f"LLVM's passes left IR that is not valid (a bug): {fault}")


def _parsed(parse: Callable[[str], Any], text: str, imports: Iterable[str]) -> Any:
    try:
        module = parse(text)
    except RuntimeError as error:
        raise ValueError(f"the generated LLVM IR is not valid (a bug): {error}") from None
    try:
        known = _defined(module)
        for other in map(parse, imports):
            for function in other.functions:
                if function.name in known and not function.is_declaration:
                    function.linkage = "linkonce_odr"  # two imports brought the same: one is taken
            known |= _defined(other)
            module.link_in(other)
        module.verify()
    except RuntimeError as error:
        where = "imported by pragma_import_llvm" if imports else "generated (a bug)"
        raise ValueError(f"the LLVM IR that was {where} is not valid: {error}") from None
    return module


def _defined(module: Any) -> set[str]:
    return {f.name for f in module.functions if not f.is_declaration}


def _optimise(module: Any, where: Machine, level: int, loops: bool, slp: bool, unroll: bool
              ) -> None:
    """Run LLVM's passes on a module, with vectorization of ``loops`` and of straight-line code."""
    llvm = binding()
    builder = _pass_builder(where, level, loops, slp, unroll)
    if level:
        passes = builder.getModulePassManager()
    else:
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
    try:
        passes.run(module, builder)
    finally:  # llvmlite's own close() frees nothing: 60 kB a module would leak
        llvm.newpassmanagers.NewPassManager._dispose(passes)
        passes.detach()


def _pass_builder(where: Machine, level: int, loops: bool, slp: bool, unroll: bool) -> Any:
    """A pass builder of LLVM, for one module.

    It must not be used for another: a run leaves pointers to its own stack in the builder, which
    the next run follows. A builder leaks less than 2 kB.
    """
    llvm = binding()
    options = llvm.create_pipeline_tuning_options(level)
    options.loop_vectorization = options.loop_interleaving = loops
    options.slp_vectorization = slp
    options.loop_unrolling = unroll
    return llvm.create_pass_builder(where.target_machine, options)


#: The time that LLVM takes grows with the square of the instructions in a basic block: some 3 s for
#: 6,000 of them, a minute for 24,000. With longer ones code is not optimised, which takes linear
#: time: a second for 150,000.
_LONG_BLOCK = 6_000


#: So does that of its loop vectorizer with the loops of a function: 2 s for 500 of them, 26 s for
#: 1,500. Without it that many take 4 s.
_MANY_LOOPS = 500


def _most_loops(text: str) -> int:
    """The number of loops in the function of an IR text that has most."""
    return max(part.count(", !llvm.loop ") for part in text.split("\ndefine "))


#: The register allocator's time grows with the cube of the floating point constants of a function
#: that has as many branches, as all of them are kept in registers around a loop: 1 s for 300, four
#: minutes for 2,000.
_MANY_CHOICES = 400


def _many_choices(text: str) -> bool:
    """Whether a function has many branches, and many different constants of floating point."""
    return any(
        part.count("br i1 ") - part.count(", !llvm.loop ") > _MANY_CHOICES
        and len(set(re.findall(r"\b0x[0-9A-F]{16}\b", part))) > _MANY_CHOICES
        for part in text.split("\ndefine "))


def _longest_block(text: str) -> int:
    """The number of instructions in the longest basic block of an IR text."""
    longest = length = 0
    for line in text.splitlines():
        if line.startswith("  "):
            length += 1
        else:
            longest, length = max(longest, length), 0
    return longest
