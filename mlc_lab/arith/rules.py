"""The rewrite rules of the simplifier, as data: one row a rule, grouped by the operator at the top.

A row reads `pattern -> result if condition`. `->>` simplifies the result again. Several patterns
of one rule are separated by ` | `. In a row

    x y z w     any expression; used twice, both occurrences must be the same
    c1 c2 ...   an integer constant; arithmetic on constants is done at once
    // %        floor division and its remainder; div() mod() truncate as in C
    lanes       the number of lanes of a vector; ramp(base, stride, lanes), bcast(value, lanes)
    lt ge eq    in a condition: the analyzer must prove the comparison of the two expressions

Rules without vectors hold for the integers and are applied to int32 and int64 scalars, which
indices are: their arithmetic is taken not to overflow. `pattern.py` compiles a group for a pair of
operand types into one Python function when such a node is first met. A test takes every row and
checks it for all small values. Division by zero has no meaning, so a rule need not keep it.
`a <= b` is rewritten as `not (b < a)`, so it has no group of its own. The rules are what TVM's
rewrite simplifier knows as facts of arithmetic, and their results take the forms that it prints.
"""

from __future__ import annotations

VECTOR_ARITH = {
    "+": """
        ramp(x, y, lanes) + ramp(z, w, lanes) -> ramp(x + z, y + w, lanes)
        ramp(x, y, lanes) + bcast(z, lanes) -> ramp(x + z, y, lanes)
        bcast(z, lanes) + ramp(x, y, lanes) -> ramp(z + x, y, lanes)
        bcast(x, lanes) + bcast(y, lanes) -> bcast(x + y, lanes)
        x + bcast(c1, lanes) + bcast(c2, lanes) -> x + bcast(c1 + c2, lanes)
    """,
    "-": """
        ramp(x, y, lanes) - ramp(z, w, lanes) -> ramp(x - z, y - w, lanes)
        ramp(x, y, lanes) - bcast(z, lanes) -> ramp(x - z, y, lanes)
        bcast(z, lanes) - ramp(x, y, lanes) -> ramp(z - x, 0 - y, lanes)
        bcast(x, lanes) - bcast(y, lanes) -> bcast(x - y, lanes)
    """,
    "*": """
        bcast(x, lanes) * bcast(y, lanes) -> bcast(x * y, lanes)
        ramp(x, y, lanes) * bcast(z, lanes) -> ramp(x * z, y * z, lanes)
        bcast(z, lanes) * ramp(x, y, lanes) -> ramp(x * z, y * z, lanes)
    """,
    "//": """
        bcast(x, lanes) // bcast(y, lanes) -> bcast(x // y, lanes)
        ramp(x, c1, lanes) // bcast(c2, lanes) -> ramp(x // c2, c1 // c2, lanes) if c2 > 0
            and c1 % c2 == 0
        ramp(x, c1, lanes) // bcast(c2, lanes) -> bcast(x // c2, lanes) if c2 > 0 and c1 >= 0
            and lt(x % c2 + c1 * (lanes - 1), c2)
    """,
    "%": """
        bcast(x, lanes) % bcast(y, lanes) -> bcast(x % y, lanes)
        ramp(x, c1, lanes) % bcast(c2, lanes) -> bcast(x % c2, lanes) if c2 > 0 and c1 % c2 == 0
        ramp(x, c1, lanes) % bcast(c2, lanes) -> ramp(x % c2, c1, lanes) if c2 > 0 and c1 >= 0
            and lt(x % c2 + c1 * (lanes - 1), c2)
    """,
    "div": """
        div(bcast(x, lanes), bcast(y, lanes)) -> bcast(div(x, y), lanes)
        div(ramp(x, c1, lanes), bcast(c2, lanes)) -> ramp(div(x, c2), c1 // c2, lanes)
            if c2 > 0 and c1 % c2 == 0 and c1 >= 0 and ge(x, 0)
    """,
    "mod": """
        mod(bcast(x, lanes), bcast(y, lanes)) -> bcast(mod(x, y), lanes)
        mod(ramp(x, c1, lanes), bcast(c2, lanes)) -> bcast(mod(x, c2), lanes) if c2 > 0
            and c1 % c2 == 0 and c1 >= 0 and ge(x, 0)
    """,
    "min": "min(bcast(x, lanes), bcast(y, lanes)) -> bcast(min(x, y), lanes)",
    "max": "max(bcast(x, lanes), bcast(y, lanes)) -> bcast(max(x, y), lanes)",
    "==": "(bcast(x, lanes) == bcast(y, lanes)) -> bcast(x == y, lanes)",
    "<": """
        (bcast(x, lanes) < bcast(y, lanes)) -> bcast(x < y, lanes)
        (ramp(x, z, lanes) < ramp(y, z, lanes)) -> bcast(x < y, lanes)
        (ramp(x, c1, lanes) < bcast(y, lanes)) -> bcast(True, lanes) if c1 > 0
            and lt(x + c1 * (lanes - 1), y)
        (ramp(x, c1, lanes) < bcast(y, lanes)) -> bcast(False, lanes) if c1 > 0 and ge(x, y)
    """,
    "and": "(bcast(x, lanes) and bcast(y, lanes)) -> bcast(x and y, lanes)",
    "or": "(bcast(x, lanes) or bcast(y, lanes)) -> bcast(x or y, lanes)",
    "not": "(not bcast(x, lanes)) -> bcast(not x, lanes)",
}

ADD = """
    x - y + y -> x
    x + (y - x) -> y
    (x - y) + (y - z) -> x - z
    (x - y) + (z - x) -> z - y
    min(x, y - z) + z | z + min(x, y - z) -> min(x + z, y)
    min(x - z, y) + z | z + min(x - z, y) -> min(x, y + z)
    max(x, y - z) + z | z + max(x, y - z) -> max(x + z, y)
    max(x - z, y) + z | z + max(x - z, y) -> max(x, y + z)
    min(x, y + z * c1) + z * c2 | min(x, z * c1 + y) + z * c2 -> min(x + z * c2, y) if c1 == -c2
    max(x, y + z * c1) + z * c2 | max(x, z * c1 + y) + z * c2 -> max(x + z * c2, y) if c1 == -c2
    min(y + z * c1, x) + z * c2 | min(z * c1 + y, x) + z * c2 -> min(x + z * c2, y) if c1 == -c2
    max(y + z * c1, x) + z * c2 | max(z * c1 + y, x) + z * c2 -> max(x + z * c2, y) if c1 == -c2
    max(x, y) + min(x, y) | min(x, y) + max(x, y) -> x + y
    max(x, y) + min(y, x) | min(x, y) + max(y, x) -> x + y
    min(x, y + c1) + c2 -> min(x + c2, y) if c1 == -c2
    min(x + c1, y) + c2 -> min(x, y + c2) if c1 == -c2
    max(x, y + c1) + c2 -> max(x + c2, y) if c1 == -c2
    max(x + c1, y) + c2 -> max(x, y + c2) if c1 == -c2
    x // y * y + x % y | x % y + x // y * y -> x
    y * (x // y) + x % y | x % y + y * (x // y) -> x
    div(x, c1) * c1 + mod(x, c1) | mod(x, c1) + div(x, c1) * c1 -> x if c1 != 0
    (x % c1 + c2) // c1 + x // c1 | x // c1 + (x % c1 + c2) // c1 -> (x + c2) // c1 if c1 > 0
    x % c1 + (x + c2) % c1 | (x + c2) % c1 + x % c1 -> 1 if c1 == 2 and c2 % 2 == 1
    x // c1 + x % c1 -> (x + 1) // c1 if c1 == 2
    x + (x + y) // c1 * c2 ->> (x + y) % c1 - y if c1 != 0 and c2 == -c1
    x + (x - y) // c1 * c2 ->> (x - y) % c1 + y if c1 != 0 and c2 == -c1
    x * c3 + x // c1 * c2 ->> x % c1 * c3 if c1 != 0 and c2 == -c1 * c3
    x // c1 * c2 + x * c3 ->> x % c1 * c3 if c1 != 0 and c2 == -c1 * c3
    x * c3 + (x + y) // c1 * c2 ->> ((x + y) % c1 - y) * c3 if c1 != 0 and c2 == -c1 * c3
    x * c3 + (x - y) // c1 * c2 ->> ((x - y) % c1 + y) * c3 if c1 != 0 and c2 == -c1 * c3
    (x + y) // c1 * c2 + x * c3 ->> (y - (x + y) % c1) * -c3 if c1 != 0 and c2 == -c1 * c3
    (x - y) // c1 * c2 + x * c3 ->> (0 - (x - y) % c1 - y) * -c3 if c1 != 0 and c2 == -c1 * c3
    x + div(x + y, c1) * c2 ->> mod(x + y, c1) - y if c1 != 0 and c2 == -c1
    x + div(x - y, c1) * c2 ->> mod(x - y, c1) + y if c1 != 0 and c2 == -c1
    x * c3 + div(x, c1) * c2 ->> mod(x, c1) * c3 if c1 != 0 and c2 == -c1 * c3
    div(x, c1) * c2 + x * c3 ->> mod(x, c1) * c3 if c1 != 0 and c2 == -c1 * c3
    x * c3 + div(x + y, c1) * c2 ->> (mod(x + y, c1) - y) * c3 if c1 != 0 and c2 == -c1 * c3
    x * c3 + div(x - y, c1) * c2 ->> (mod(x - y, c1) + y) * c3 if c1 != 0 and c2 == -c1 * c3
    div(x + y, c1) * c2 + x * c3 ->> (y - mod(x + y, c1)) * -c3 if c1 != 0 and c2 == -c1 * c3
    div(x - y, c1) * c2 + x * c3 ->> (0 - mod(x - y, c1) - y) * -c3 if c1 != 0 and c2 == -c1 * c3
    x + c1 + c2 -> x + (c1 + c2)
    x - c1 + c2 -> x + (c2 - c1)
    c1 - x + c2 -> (c1 + c2) - x
    c1 + x -> x + c1
    x + x -> x * 2
    x * y + x * z | y * x + x * z | x * y + z * x ->> x * (y + z)
    y * x + z * x ->> (y + z) * x
    x * y + x | y * x + x ->> x * (y + 1)
    x + y * x | x + x * y ->> x * (1 + y)
    x + (c1 - y) ->> (x - y) + c1
    (c1 - y) + x ->> (x - y) + c1
    x + c1 + y ->> (x + y) + c1
    x + (c1 + y) | x + (y + c1) ->> (x + y) + c1
    x + (y - z) ->> (x + y) - z if is_negative_product(z)
    x + max(y, z) -> max(y, z) + x if not is_extremum(x)
    x + min(y, z) -> min(y, z) + x if not is_extremum(x)
"""

SUB = """
    x + y - y -> x
    x + y - x -> y
    y - (x + y) -> 0 - x
    y - (y + x) -> 0 - x
    x - x -> 0
    (x + y) - (x + z) | (y + x) - (x + z) -> y - z
    (x + y) - (z + x) | (y + x) - (z + x) -> y - z
    (x + y) + z - x -> y + z
    (y + x) + z - x -> y + z
    (x - y) - x -> 0 - y
    x - (x - y) -> y
    (x - y) - (x - z) -> z - y
    (x - y) - (z - y) -> x - z
    c1 - x - (c2 - y) -> (y - x) + (c1 - c2)
    x + c1 - (y + c2) ->> (x - y) + (c1 - c2)
    x - (y + c1) ->> (x - y) + -c1
    x + c1 - y ->> (x - y) + c1
    c1 - (x + c2) -> (c1 - c2) - x
    c1 - (c2 - x) -> x + (c1 - c2)
    x - (c1 - y) ->> (x + y) + -c1
    x - c1 -> x + -c1
    min(x, y) - x -> min(0, y - x)
    min(x, y) - y -> min(x - y, 0)
    x - max(x, y) -> min(0, x - y)
    y - max(x, y) -> min(y - x, 0)
    max(x, y) - x -> max(0, y - x)
    max(x, y) - y -> max(x - y, 0)
    x - min(x, y) -> max(0, x - y)
    y - min(x, y) -> max(y - x, 0)
    min(x + y, z) - x | min(y + x, z) - x -> min(y, z - x)
    min(z, x + y) - x | min(z, y + x) - x -> min(z - x, y)
    max(x + y, z) - x | max(y + x, z) - x -> max(y, z - x)
    max(z, x + y) - x | max(z, y + x) - x -> max(z - x, y)
    max(x + y, z) - (x + w) | max(y + x, z) - (w + x) -> max(y - w, z - (x + w))
    x - min(x + y, z) | x - min(y + x, z) -> max(0 - y, x - z)
    x - min(z, x + y) | x - min(z, y + x) -> max(x - z, 0 - y)
    x - max(x + y, z) | x - max(y + x, z) -> min(0 - y, x - z)
    x - max(z, x + y) | x - max(z, y + x) -> min(x - z, 0 - y)
    min(x, y) - min(y, x) -> 0
    max(x, y) - max(y, x) -> 0
    min(x, y) - min(z, w) -> x - z if eq(x - z, y - w)
    min(x, y) - min(z, w) -> x - w if eq(x - w, y - z)
    max(x, y) - max(z, w) -> x - z if eq(x - z, y - w)
    max(x, y) - max(z, w) -> x - w if eq(x - w, y - z)
    x * y - x * z | y * x - x * z | x * y - z * x ->> x * (y - z)
    y * x - z * x ->> (y - z) * x
    x * y - x | y * x - x ->> x * (y - 1)
    x - y * x | x - x * y ->> x * (1 - y)
    x - x // c1 * c1 -> x % c1 if c1 != 0
    x // c1 * c1 - x -> 0 - x % c1 if c1 != 0
    x - div(x, c1) * c1 -> mod(x, c1) if c1 != 0
    (x + y) // c1 - x // c1 -> (x % c1 + y) // c1 if c1 > 0
    (x + c2) // c1 - x // c1 ->> (x % c1 + c2) // c1 if c1 > 0
    (x + c1) // c3 - (x + c2) // c3 -> (c1 - c2) // c3 if c3 > 0 and (c1 - c2) % c3 == 0
    (x + c1) // c2 - x % c2 -> x // c2 if c1 == 1 and c2 == 2
    (x + y) // c1 * c1 - x ->> y - (x + y) % c1 if c1 != 0
    (x - y) // c1 * c1 - x ->> 0 - (x - y) % c1 - y if c1 != 0
    div(x + y, c1) * c1 - x ->> y - mod(x + y, c1) if c1 != 0
    div(x - y, c1) * c1 - x ->> 0 - mod(x - y, c1) - y if c1 != 0
    div(x, c1) * c1 - x -> 0 - mod(x, c1) if c1 != 0
    div(x + c1, c3) - div(x, c3) -> div(mod(x, c3) + c1, c3) if c1 >= 0 and c3 > 0 and ge(x, 0)
    div(x + c1, c3) - div(x + c2, c3) -> div(mod(x + c2, c3) + (c1 - c2), c3) if c1 >= c2
        and c3 > 0 and ge(x + c2, 0)
    0 - x * c1 -> x * -c1
    x - y * c1 ->> x + y * -c1
    x - (y - z) ->> (x + z) - y
"""

MUL = """
    c1 * x -> x * c1
    (x + c1) * c2 -> x * c2 + c1 * c2
    (x * c1) * c2 -> x * (c1 * c2)
    min(x, y) * max(x, y) | max(x, y) * min(x, y) -> x * y
    min(x, y) * max(y, x) | max(x, y) * min(y, x) -> x * y
    (x - y) * c1 -> (y - x) * -c1 if c1 < 0
    x * (y * c1) -> x * y * c1
    (x * c1) * y -> x * y * c1
"""

FLOORDIV = """
    x // c1 // c2 -> x // (c1 * c2) if c1 > 0 and c2 > 0
    (x // c1 + c2) // c3 -> (x + c1 * c2) // (c1 * c3) if c1 > 0 and c3 > 0
    (x % c1 + c2) // c3 -> x % c1 if c1 == 2 and c2 == 1 and c3 == 2
    (x * c1) // c2 -> x * (c1 // c2) if c2 != 0 and c1 % c2 == 0
    (x * c1) // c2 -> x // (c2 // c1) if c1 > 0 and c2 > 0 and c2 % c1 == 0
    x // c1 -> 0 if c1 > 0 and ge(x, 0) and lt(x, c1)
    x // c1 -> -1 if c1 > 0 and lt(x, 0) and ge(x, -c1)
    x // x -> 1
    (x * c1) // x -> c1
    (x * c1 + y) // c2 ->> x * (c1 // c2) + y // c2 if c2 > 0 and c1 % c2 == 0
    (y + x * c1) // c2 ->> x * (c1 // c2) + y // c2 if c2 > 0 and c1 % c2 == 0
    (x * c1 + y) // c2 | (y + x * c1) // c2 ->> x // (c2 // c1) if c1 > 0 and c2 > 0
        and c2 % c1 == 0 and ge(y, 0) and lt(y, c1)
    (y - x * c1) // c2 ->> y // c2 - x * (c1 // c2) if c2 > 0 and c1 % c2 == 0
    (x * c1 - y) // c2 ->> x * (c1 // c2) + (0 - y) // c2 if c2 > 0 and c1 % c2 == 0
    (x * c1 + y + z) // c2 | (y + x * c1 + z) // c2 ->> x * (c1 // c2) + (y + z) // c2
        if c2 > 0 and c1 % c2 == 0
    (x * c1 - y + z) // c2 ->> x * (c1 // c2) + (z - y) // c2 if c2 > 0 and c1 % c2 == 0
    (x * c1 + y - z) // c2 | (y + x * c1 - z) // c2 ->> x * (c1 // c2) + (y - z) // c2
        if c2 > 0 and c1 % c2 == 0
    (x + c1) // c2 -> x // c2 + c1 // c2 if c2 > 0 and c1 % c2 == 0
    (x * c1 + c3) // c2 -> x // (c2 // c1) + c3 // c2
        if c1 > 0 and c2 > 0 and c2 % c1 == 0 and c3 % c2 < c1
    (x * c1) // (y * c1) -> x // y if c1 > 0
    min(x * c1, y) // c2 ->> min(x * (c1 // c2), y // c2) if c2 > 0 and c1 % c2 == 0
    min(y, x * c1) // c2 ->> min(y // c2, x * (c1 // c2)) if c2 > 0 and c1 % c2 == 0
    max(x * c1, y) // c2 ->> max(x * (c1 // c2), y // c2) if c2 > 0 and c1 % c2 == 0
    max(y, x * c1) // c2 ->> max(y // c2, x * (c1 // c2)) if c2 > 0 and c1 % c2 == 0
    (x * y) // y | (y * x) // y -> x
    (x * y * z) // y | (y * x * z) // y -> x * z
    (x + y) // x | (y + x) // x -> y // x + 1
    (x * z + y) // z | (z * x + y) // z -> x + y // z
    (y + x * z) // z | (y + z * x) // z -> y // z + x
    (x - y) // x -> 1 + (0 - y) // x
    (x * z - y) // z | (z * x - y) // z -> x + (0 - y) // z
    (y - x * z) // z | (y - z * x) // z -> y // z - x
    (x - y + z) // x -> (z - y) // x + 1
    (x + y + z) // x | (y + x + z) // x -> (y + z) // x + 1
    (y + (x + z)) // x | (y + (z + x)) // x -> (y + z) // x + 1
    (x - x % c1) // c1 -> x // c1 if c1 != 0
"""

FLOORMOD = """
    (x * c1) % c2 -> 0 if c2 != 0 and c1 % c2 == 0
    (x * c1) % c2 -> (x * (c1 % c2)) % c2 if c2 > 0 and (c1 >= c2 or c1 < 0)
    x % c1 -> x if c1 > 0 and ge(x, 0) and lt(x, c1)
    x % c1 -> remainder(x, c1) if c1 > 0 and has_remainder(x, c1)
    (x * c1 + y) % c2 | (y + x * c1) % c2 ->> y % c2 if c2 > 0 and c1 % c2 == 0
    (x * c1 + y) % c2 | (y + x * c1) % c2 ->> x % (c2 // c1) * c1 + y if c1 > 0 and c2 > 0
        and c2 % c1 == 0 and ge(y, 0) and lt(y, c1)
    (y - x * c1) % c2 ->> y % c2 if c2 > 0 and c1 % c2 == 0
    (x * c1 - y) % c2 ->> (0 - y) % c2 if c2 > 0 and c1 % c2 == 0
    (x + c1) % c2 -> x % c2 if c2 > 0 and c1 % c2 == 0
    (x + c1) % c2 -> (x + c1 % c2) % c2 if c2 > 0 and (c1 < 0 or c1 >= c2)
    x % c1 % c2 -> x % c2 if c1 != 0 and c2 > 0 and c1 % c2 == 0
    x % c1 % c2 -> x % c1 if c1 > 0 and c2 > 0 and c2 % c1 == 0
    x % x -> 0
    (x * y) % y | (y * x) % y -> 0
    (x + y * z) % z | (x + z * y) % z | (y * z + x) % z | (z * y + x) % z -> x % z
    (x * c1) % (y * c1) -> x % y * c1 if c1 > 0
    (x + y) % x | (y + x) % x -> y % x
    (x - x % y) % y -> 0
    (x - x % c1) % c2 -> 0 if c2 != 0 and c1 == -c2
    (x - x % (y * c1)) % y -> 0 if c1 == -1
    (x + x * c1 % c2) % c2 -> 0 if c2 > 0 and (c1 + 1) % c2 == 0
    (x + x * c1 % y) % y -> 0 if c1 == -1
    (x * c1 + y) % c2 -> (x * (c1 % c2) + y) % c2 if c2 > 0 and c1 > c2 and c1 % c2 > 1
    (y + x * c1) % c2 -> (y + x * (c1 % c2)) % c2 if c2 > 0 and c1 > c2 and c1 % c2 > 1
"""

DIV = """
    div(div(x, c1), c2) -> div(x, c1 * c2) if c1 > 0 and c2 > 0
    div(x * c1, c2) -> x * (c1 // c2) if c2 != 0 and c1 % c2 == 0
    div(x * c1, c2) -> div(x, c2 // c1) if c1 > 0 and c2 > 0 and c2 % c1 == 0
    div(x, c1) -> 0 if c1 > 0 and lt(x, c1) and lt(0 - x, c1)
    div(x, x) -> 1
    div(div(x, c1) + c2, c3) -> div(x + c1 * c2, c1 * c3) if c1 > 0 and c2 >= 0 and c3 > 0
        and ge(x, 0)
    div(min(x * c1, y), c2) ->> min(x * (c1 // c2), div(y, c2)) if c1 >= 0 and c2 > 0
        and c1 % c2 == 0 and ge(x, 0) and ge(y, 0)
    div(min(y, x * c1), c2) ->> min(div(y, c2), x * (c1 // c2)) if c1 >= 0 and c2 > 0
        and c1 % c2 == 0 and ge(x, 0) and ge(y, 0)
    div(max(x * c1, y), c2) ->> max(x * (c1 // c2), div(y, c2)) if c1 >= 0 and c2 > 0
        and c1 % c2 == 0 and ge(x, 0) and ge(y, 0)
    div(max(y, x * c1), c2) ->> max(div(y, c2), x * (c1 // c2)) if c1 >= 0 and c2 > 0
        and c1 % c2 == 0 and ge(x, 0) and ge(y, 0)
    div(x * c1 + y, c2) ->> x * (c1 // c2) + div(y, c2) if c1 >= 0
        and c2 > 0 and c1 % c2 == 0 and ge(x, 0) and ge(y, 0)
    div(y + x * c1, c2) ->> div(y, c2) + x * (c1 // c2) if c1 >= 0
        and c2 > 0 and c1 % c2 == 0 and ge(x, 0) and ge(y, 0)
    div(x * c1 + y + z, c2) | div(y + x * c1 + z, c2) ->> x * (c1 // c2) + div(y + z, c2)
        if c1 >= 0 and c2 > 0 and c1 % c2 == 0 and ge(x, 0) and ge(y + z, 0)
    div(x * c1 + y, c2) | div(y + x * c1, c2) ->> div(x, c2 // c1) if c1 > 0 and c2 > 0
        and c2 % c1 == 0 and ge(x, 0) and ge(y, 0) and lt(y, c1)
    div(x + c1, c2) -> div(x, c2) + c1 // c2 if c1 > 0 and c2 > 0 and c1 % c2 == 0 and ge(x, 0)
    div(x * y, y) | div(y * x, y) -> x
    div(x + y, x) | div(y + x, x) -> div(y, x) + 1 if ge(x, 0) and ge(y, 0)
    div(x + y + z, x) | div(y + x + z, x) -> div(y + z, x) + 1 if ge(x, 0) and ge(y + z, 0)
    div(y + (x + z), x) | div(y + (z + x), x) -> div(y + z, x) + 1 if ge(x, 0) and ge(y + z, 0)
    div(x * z + y, z) | div(z * x + y, z) -> x + div(y, z) if ge(x, 0) and ge(y, 0) and ge(z, 0)
    div(y + x * z, z) | div(y + z * x, z) -> div(y, z) + x if ge(x, 0) and ge(y, 0) and ge(z, 0)
"""

MOD = """
    mod(x, c1) ->> mod(x, -c1) if c1 < 0
    mod(x * c1 + y, c2) | mod(y + x * c1, c2) ->> mod(y, c2) if c1 <= 0 and c2 > 0
        and c1 % c2 == 0 and ge(0 - x, 0) and ge(y, 0)
    mod(x * c1, c2) -> 0 if c2 != 0 and c1 % c2 == 0
    mod(x, c1) -> x if c1 > 0 and lt(x, c1) and lt(0 - x, c1)
    mod(x * c1 + y, c2) | mod(y + x * c1, c2) ->> mod(y, c2) if c1 >= 0 and c2 > 0
        and c1 % c2 == 0 and ge(x, 0) and ge(y, 0)
    mod(x + c1, c2) -> mod(x, c2) if c1 >= 0 and c2 > 0 and c1 % c2 == 0 and ge(x, 0)
    mod(x, c1) -> remainder(x, c1) if c1 > 0 and ge(x, 0) and has_remainder(x, c1)
    mod(x, x) -> 0
    mod(x * y, y) | mod(y * x, y) -> 0
"""

#: min and max mirror each other: `<` is written for both, `MIN`/`MAX` name the two ways round
EXTREMUM = """
    MIN(x, x) -> x
    MIN(MAX(x, y), x) | MIN(MAX(y, x), x) | MIN(x, MAX(x, y)) | MIN(x, MAX(y, x)) -> x
    MIN(MIN(x, y), x) | MIN(MIN(x, y), y) -> MIN(x, y)
    MIN(x, MIN(x, y)) | MIN(y, MIN(x, y)) -> MIN(x, y)
    MIN(MIN(MIN(x, y), z), y) -> MIN(MIN(x, y), z)
    MIN(MIN(MIN(MIN(x, y), z), w), y) -> MIN(MIN(MIN(x, y), z), w)
    MIN(MAX(x, y), MIN(x, y)) | MIN(MIN(x, y), MAX(x, y)) -> MIN(x, y)
    MIN(MAX(x, y), MIN(y, x)) | MIN(MIN(x, y), MAX(y, x)) -> MIN(x, y)
    MIN(MAX(x, y), MAX(x, z)) | MIN(MAX(y, x), MAX(x, z)) -> MAX(MIN(y, z), x)
    MIN(MAX(x, y), MAX(z, x)) | MIN(MAX(y, x), MAX(z, x)) -> MAX(MIN(y, z), x)
    MIN(MIN(x, y), MIN(x, z)) | MIN(MIN(y, x), MIN(x, z)) -> MIN(MIN(y, z), x)
    MIN(MIN(x, y), MIN(z, x)) | MIN(MIN(y, x), MIN(z, x)) -> MIN(MIN(y, z), x)
    MIN(MIN(x, c1), c2) -> MIN(x, MIN(c1, c2))
    MIN(MIN(x, c1), y) -> MIN(MIN(x, y), c1)
    MIN(x + y, x + z) | MIN(y + x, x + z) ->> MIN(y, z) + x
    MIN(x + y, z + x) | MIN(y + x, z + x) ->> MIN(y, z) + x
    MIN(x - y, x - z) -> x - MAX(y, z)
    MIN(x - y, z - y) -> MIN(x, z) - y
    MIN(x + c1, y + c1) -> MIN(x, y) + c1
    MIN(c1 - x, c2 - x) -> MIN(c1, c2) - x
    MIN(c1 - x, c2) ->> c1 - MAX(x, c1 - c2) if c2 != 0
"""
MIN_ONLY = """
    min(x, y) -> x if always_le(x, y)
    min(x, y) -> y if always_le(y, x)
    min(x * c1, y * c1) -> min(x, y) * c1 if c1 > 0
    min(x * c1, y * c1) -> max(x, y) * c1 if c1 < 0
    min(x // c1, y // c1) -> min(x, y) // c1 if c1 > 0
    min(x // c1, y // c1) -> max(x, y) // c1 if c1 < 0
    min(x * c1, c2) -> min(x, c2 // c1) * c1 if c1 > 1 and c2 != 0 and c2 % c1 == 0
    min(x // c1 * c1, x) | min(x, x // c1 * c1) -> x // c1 * c1 if c1 > 0
    min((x + c1) // c2 * c2, x) | min(x, (x + c1) // c2 * c2) -> x if c2 > 0 and c1 + 1 == c2
    min(max(x, c1), c2) -> c2 if c1 >= c2
    min(x * c1, c2) -> max(x, c2 // c1) * c1 if c1 < -1 and c2 != 0 and c2 % c1 == 0
    min(div(x, c1), div(y, c1)) -> div(min(x, y), c1) if c1 > 0
    min(div(x, c1), div(y, c1)) -> div(max(x, y), c1) if c1 < 0
    min(div(x + c1, c2) * c2, x) | min(x, div(x + c1, c2) * c2) -> x if c2 > 0 and c1 + 1 == c2
    min((x + c1) // c2 * c2, max(x, c2)) | min(max(x, c2), (x + c1) // c2 * c2) -> max(x, c2)
        if c2 > 0 and c1 + 1 == c2 and ge(x, 1)
    min(div(x + c1, c2) * c2, max(x, c2)) | min(max(x, c2), div(x + c1, c2) * c2) -> max(x, c2)
        if c2 > 0 and c1 + 1 == c2 and ge(x, 1)
"""
MAX_ONLY = """
    max(x, y) -> x if always_le(y, x)
    max(x, y) -> y if always_le(x, y)
    max(x * c1, y * c1) -> max(x, y) * c1 if c1 > 0
    max(x * c1, y * c1) -> min(x, y) * c1 if c1 < 0
    max(x // c1, y // c1) -> max(x, y) // c1 if c1 > 0
    max(x // c1, y // c1) -> min(x, y) // c1 if c1 < 0
    max(x * c1, c2) -> max(x, c2 // c1) * c1 if c1 > 1 and c2 != 0 and c2 % c1 == 0
    max(x // c1 * c1, x) | max(x, x // c1 * c1) -> x if c1 > 0
    max((x + c1) // c2 * c2, x) | max(x, (x + c1) // c2 * c2) -> (x + c1) // c2 * c2 if c2 > 0
        and c1 + 1 == c2
    max(min(x, c1), c2) -> c2 if c1 <= c2
    max(x * c1, c2) -> min(x, c2 // c1) * c1 if c1 < -1 and c2 != 0 and c2 % c1 == 0
    max(div(x, c1), div(y, c1)) -> div(max(x, y), c1) if c1 > 0
    max(div(x, c1), div(y, c1)) -> div(min(x, y), c1) if c1 < 0
    max(div(x + c1, c2) * c2, x) | max(x, div(x + c1, c2) * c2) -> div(x + c1, c2) * c2 if c2 > 0
        and c1 + 1 == c2
"""

EQ = """
    (c1 == x) -> x == c1
    (x + c1 == c2) -> x == c2 - c1
    (x - c1 == c2) -> x == c2 + c1
    (c1 - x == c2) -> x == c1 - c2
    (x * c1 == 0) -> x == 0 if c1 != 0
    (x * y == 0) ->> x == 0 or y == 0
    (min(x, y) == x) | (min(y, x) == x) ->> x <= y
    (max(x, y) == x) | (max(y, x) == x) ->> y <= x
    (min(x, c1) == c2) -> False if c1 < c2
    (max(x, c1) == c2) -> False if c1 > c2
    (min(x, c1) == c2) -> x == c2 if c1 > c2
    (max(x, c1) == c2) -> x == c2 if c1 < c2
    (min(x, c1) == c2) ->> c1 <= x if c1 == c2
    (max(x, c1) == c2) ->> x <= c1 if c1 == c2
"""

LT = """
    (x < x) -> False
    (x + y < x + z) | (y + x < x + z) | (x + y < z + x) | (y + x < z + x) ->> y < z
    (y - x < z - x) ->> y < z
    (x - y < x - z) ->> z < y
    (x < x + z) | (x < z + x) ->> 0 < z
    (x < x - z) ->> z < 0
    (c1 < x + c2) ->> c1 - c2 < x
    (c1 < c2 - x) ->> x < c2 - c1
    (x + c1 < c2) ->> x < c2 - c1
    (x - c1 < c2) ->> x < c2 + c1
    (c1 - x < c2) ->> c1 - c2 < x
    (x + c1 < y + c2) ->> x < y + (c2 - c1)
    (x < y + c1) ->> x <= y if c1 == 1
    (x < y + c1) ->> x + -c1 < y if c1 < 0
    (x < y - c1) ->> x + c1 < y if c1 > 0
    (x + c1 < y) ->> x <= y if c1 == -1
    (x + c1 < y) ->> x < y + -c1 if c1 < -1
    (x - c1 < y) ->> x <= y if c1 == 1
    (x - c1 < y) ->> x < y + c1 if c1 > 1
    (x * c1 < y * c1) ->> x < y if c1 > 0
    (x * c1 < y * c1) ->> y < x if c1 < 0
    (x * c1 < c2) ->> x < (c2 - 1) // c1 + 1 if c1 > 0
    (x * c1 < c2) ->> c2 // c1 < x if c1 < 0
    (c2 < x * c1) ->> c2 // c1 < x if c1 > 0
    (c2 < x * c1) ->> x < (c2 + 1) // c1 + 1 if c1 < 0 and (c2 + 1) % c1 != 0
    (c2 < x * c1) ->> x < (c2 + 1) // c1 + 1 if c1 < 0 and (c2 + 1) % c1 == 0
    (x // c1 < c2) ->> x < c1 * c2 if c1 > 0
    (c1 < x // c2) ->> (c1 + 1) * c2 - 1 < x if c2 > 0
    (x // c1 * c1 < x) ->> 0 < x % c1 if c1 > 0
    (div(x, c1) < c2) ->> x < c1 * c2 if c1 > 0 and c2 > 0
    (div(x, c1) < c2) ->> x < c1 * (c2 - 1) + 1 if c1 > 0 and c2 <= 0
    (c1 < div(x, c2)) ->> (c1 + 1) * c2 - 1 < x if c1 >= 0 and c2 > 0
    (c1 < div(x, c2)) ->> c1 * c2 < x if c1 < 0 and c2 > 0
    (div(x, c1) * c1 < x) ->> 0 < mod(x, c1) if c1 > 0
    (div(x, c1) * c1 < x + y) | (div(x, c1) * c1 < y + x) ->> 0 < mod(x, c1) + y if c1 > 0
    (div(x, c1) * c1 < x - y) ->> y < mod(x, c1) if c1 > 0
    (div(x + c2, c1) * c1 < x) ->> c2 < mod(x + c2, c1) if c1 > 0
    (div(x + c2, c1) * c1 < x + y) ->> c2 < mod(x + c2, c1) + y if c1 > 0
    (div(x + c2, c1) * c1 < x - y) ->> y + c2 < mod(x + c2, c1) if c1 > 0
    (x // c1 * c1 < x - y) ->> y < x % c1 if c1 > 0
    ((x + c2) // c1 * c1 < x - y) ->> y + c2 < (x + c2) % c1 if c1 > 0
    (x < x // c1 * c1) -> False if c1 > 0
    (x // c1 * c1 + y < x) | (y + x // c1 * c1 < x) ->> y < x % c1 if c1 > 0
    (x // c1 * c1 < x + y) | (x // c1 * c1 < y + x) ->> 0 < x % c1 + y if c1 > 0
    ((x + c2) // c1 * c1 < x + c3) ->> c2 - c3 < (x + c2) % c1 if c1 > 0
    ((x + c2) // c1 * c1 < x) ->> c2 < (x + c2) % c1 if c1 > 0
    ((x + c2) // c1 * c1 < x + y) ->> c2 < (x + c2) % c1 + y if c1 > 0
    (x * c1 + y < c2) | (y + x * c1 < c2) ->> x < c2 // c1 if c1 > 0 and c2 % c1 == 0
        and ge(y, 0) and lt(y, c1)
    (min(x, y) < x) | (min(y, x) < x) ->> y < x
    (max(x, y) < x) | (max(y, x) < x) -> False
    (x < min(x, y)) | (x < min(y, x)) -> False
    (x < max(x, y)) | (x < max(y, x)) ->> x < y
    (min(x, c1) < c2) -> True if c1 < c2
    (min(x, c1) < c2) ->> x < c2 if c1 >= c2
    (max(x, c1) < c2) -> False if c1 >= c2
    (max(x, c1) < c2) ->> x < c2 if c1 < c2
    (c1 < min(x, c2)) -> False if c1 >= c2
    (c1 < min(x, c2)) ->> c1 < x if c1 < c2
    (c1 < max(c2, x)) ->> c1 < x if c1 >= c2
    (x + c1 < max(c2, x)) ->> x < c2 - c1 if c1 >= 0
    (c1 < max(x, c2)) -> True if c1 < c2
    (c1 < max(x, c2)) ->> c1 < x if c1 >= c2
    (x < c1 - y) ->> x + y < c1
    (c1 - y < x) ->> c1 < x + y
"""

NOT = """
    (not not x) -> x
    (not (x < y)) -> y <= x
    (not (x <= y)) -> y < x
    (not (x == y)) -> x != y
    (not (x != y)) -> x == y
    (not (x and y)) ->> not x or not y
    (not (x or y)) ->> not x and not y
"""

AND = """
    (x and x) -> x
    (x and not x) | (not x and x) -> False
    (x == y and x != y) | (x != y and x == y) -> False
    (x < y and y < x) | (x <= y and y < x) | (x < y and y <= x) -> False
    (x < y and x != y) | (x != y and x < y) -> x < y
    (x < y and x <= y) | (x <= y and x < y) -> x < y
    (x <= y and x != y) | (x != y and x <= y) ->> x < y
    (x <= y and y <= x) ->> x == y
    (x < c1 and c2 < x) | (c2 < x and x < c1) -> False if c2 + 1 >= c1
    (x <= c1 and c2 < x) | (c2 < x and x <= c1) -> False if c2 >= c1
    (c2 <= x and x < c1) | (x < c1 and c2 <= x) -> False if c2 >= c1
    (c2 <= x and x <= c1) | (x <= c1 and c2 <= x) -> False if c2 > c1
    (x == c1 and x == c2) -> False if c1 != c2
    (x == c1 and x != c2) | (x != c2 and x == c1) -> x == c1 if c1 != c2
    (x and y and x) | (x and y and y) | (x and (x and y)) | (y and (x and y)) -> x and y
    (x and (y and z)) -> x and y and z
    (x // c1 == c2 and x % c1 == c3) | (x % c1 == c3 and x // c1 == c2) -> x == c1 * c2 + c3
        if c1 > 0 and c3 >= 0 and c3 < c1
    (x // c1 == c2 and x % c1 < c3) | (x % c1 < c3 and x // c1 == c2)
        -> c1 * c2 <= x and x < c1 * c2 + c3 if c1 > 0 and c3 > 0 and c3 < c1
    (x // c1 == c2 and x % c1 <= c3) | (x % c1 <= c3 and x // c1 == c2)
        -> c1 * c2 <= x and x <= c1 * c2 + c3 if c1 > 0 and c3 >= 0 and c3 < c1
    (x // c1 == c2 and c3 < x % c1) | (c3 < x % c1 and x // c1 == c2)
        -> c1 * c2 + c3 < x and x < c1 * c2 + c1 if c1 > 0 and c3 >= 0 and c3 < c1
    (x // c1 == c2 and c3 <= x % c1) | (c3 <= x % c1 and x // c1 == c2)
        -> c1 * c2 + c3 <= x and x < c1 * c2 + c1 if c1 > 0 and c3 >= 0 and c3 < c1
    (x < c1 and x % c2 < c3) -> x < (c1 - 1) // c2 * c2 + c3 and x % c2 < c3
        if c2 > 0 and c3 > 0 and c3 < c2 and (c1 - 1) % c2 >= c3
    (x <= c1 and x % c2 < c3) -> x < c1 // c2 * c2 + c3 and x % c2 < c3
        if c2 > 0 and c3 > 0 and c3 < c2 and c1 % c2 >= c3
    (x and (x or y)) | (x and (y or x)) | ((x or y) and x) | ((y or x) and x) -> x
"""

OR = """
    (x or x) -> x
    (x or not x) | (not x or x) -> True
    (x == y or x != y) | (x != y or x == y) -> True
    (x < y or y <= x) | (x <= y or y < x) | (x <= y or y <= x) -> True
    (x < y or y < x) ->> x != y
    (x < y or x != y) | (x != y or x < y) -> x != y
    (x < y or x <= y) | (x <= y or x < y) -> x <= y
    (x < y or x == y) | (x == y or x < y) | (x < y or y == x) | (y == x or x < y) -> x <= y
    (x < c1 or c2 < x) | (c2 < x or x < c1) -> True if c2 < c1
    (x <= c1 or c2 < x) | (c2 < x or x <= c1) -> True if c2 <= c1
    (c2 <= x or x < c1) | (x < c1 or c2 <= x) -> True if c2 <= c1
    (c2 <= x or x <= c1) | (x <= c1 or c2 <= x) -> True if c2 <= c1 + 1
    (x != c1 or x != c2) -> True if c1 != c2
    (x == c1 or x != c2) | (x != c2 or x == c1) -> x != c2 if c1 != c2
    (x or y or x) | (x or y or y) | (x or (x or y)) | (y or (x or y)) -> x or y
    (x or (y or z)) -> x or y or z
    (x or (x and y)) | (x or (y and x)) | ((x and y) or x) | ((y and x) or x) -> x
"""


def _mirror(rows: str, low: str, high: str) -> str:
    return rows.replace("MIN", low).replace("MAX", high)


#: node type name -> its rows, in the order in which they are tried
TABLES: dict[str, str] = {
    "Add": VECTOR_ARITH["+"] + ADD,
    "Sub": VECTOR_ARITH["-"] + SUB,
    "Mul": VECTOR_ARITH["*"] + MUL,
    "FloorDiv": VECTOR_ARITH["//"] + FLOORDIV,
    "FloorMod": VECTOR_ARITH["%"] + FLOORMOD,
    "Div": VECTOR_ARITH["div"] + DIV,
    "Mod": VECTOR_ARITH["mod"] + MOD,
    "Min": VECTOR_ARITH["min"] + MIN_ONLY + _mirror(EXTREMUM, "min", "max"),
    "Max": VECTOR_ARITH["max"] + MAX_ONLY + _mirror(EXTREMUM, "max", "min"),
    "EQ": VECTOR_ARITH["=="] + EQ,
    "LT": VECTOR_ARITH["<"] + LT,
    "And": VECTOR_ARITH["and"] + AND,
    "Or": VECTOR_ARITH["or"] + OR,
    "Not": VECTOR_ARITH["not"] + NOT,
}
