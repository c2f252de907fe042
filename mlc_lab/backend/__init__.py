"""Ways to run a tensor program: the interpreter (its meaning), LLVM, sources in other languages."""
