"""The bounds of what is read, in one place. docs/safety.md explains them.

They are far above what programs need: a text that meets one of them is no program, or one made to
hold the process. Each refusal says which bound it met.
"""

#: characters of a script or a trace, what stands in strings left out
CODE = 4 << 20
#: characters of a text in all
TEXT = 1 << 30
#: characters of a target
TARGET = 20_000
#: levels that a script's expressions and statements may be nested; 50,000 terms of a sum are that
#: many
DEPTH = 60_000
#: loops around one statement
LOOPS = 5_000

#: bits of a whole number that a script computes or a text contains
INT_BITS = 256
#: elements of a list, and characters of a string, that a script makes
ITEMS = 100_000
#: columns that a number in a string may be padded to, and digits after its point
WIDTH = 100
#: what a script may do beyond going over its own text once: parts of it that are gone over again
#: (in macros, helper functions, comprehensions, lambdas), and parts of values that are used again
WORK = 300_000
#: calls of macros, helper functions and lambdas inside of one another
CALLS = 100
#: parts of a type or shape that Relax infers
TYPE_PARTS = 20_000
#: dimensions of a tensor, and the values that one operator gives
RANK, RESULTS = 1_000, 10_000

#: levels of lists and objects in a JSON text
JSON_DEPTH = 200
