"""Ways to run a program: its meaning, a quick interpreter, LLVM, sources in other languages."""
