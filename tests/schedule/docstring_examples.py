"""The before/after example in a primitive's docstring as programs; the site shows them too."""

import ast
import re
import textwrap

from mlc_lab.script import from_source


def example(kind):
    """(before, calls, after) of a docstring, or None if it has no example."""
    found = re.search(r"Before::\n\n(.*?)\n\n?After `(.*?)`(.*?)::\n\n(.*?)(\n\n\S|\Z)",
                      kind.doc + "\n", re.S)
    if not found:
        return None
    before, call, where, after, _ = found.groups()
    return textwrap.dedent(before), call, where, textwrap.dedent(after)


def extents(tree):
    """Extent of every loop variable and block iterator."""
    out = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.For):
            names = [t.id for t in getattr(node.target, "elts", [node.target])]
            out.update(zip(names, [ast.literal_eval(a) for a in node.iter.args]))
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            call = ast.unparse(node.value.func)
            if call == "T.axis.remap":
                for name, loop in zip(node.targets[0].elts, node.value.args[1].elts):
                    out[name.id] = out[loop.id]
            elif call.startswith("T.axis."):
                out[node.targets[0].id] = ast.literal_eval(node.value.args[0])
    return out


def as_function(body, shapes=None):
    """The statements of an example as a function over the buffers they mention."""
    tree = ast.parse(body)
    known = extents(tree)
    shapes = dict(shapes or {})  # some are given in a comment: `# A: (128,)`
    shapes.update({name: ast.literal_eval(shape)
                   for name, shape in re.findall(r"# (\w+): (\([\d, ]+\))", body)})
    order, written, read_after_write = [], set(), set()
    declared = {n.targets[0].id for n in ast.walk(tree) if isinstance(n, ast.Assign)
                and isinstance(n.value, ast.Call)
                and ast.unparse(n.value.func) in ("T.alloc_buffer", "T.match_buffer")}
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            name = node.value.id
            index = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            if name not in shapes and all(isinstance(i, ast.Name) for i in index):
                shapes[name] = tuple(known[i.id] for i in index)
            if name not in order:
                order.append(name)
    blocks = [n for n in ast.walk(tree) if isinstance(n, ast.With)
              and ast.unparse(n.items[0]).startswith("T.block")]
    for block in blocks:
        own = {n.targets[0].value.id for n in ast.walk(block)
               if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Subscript)}
        reads = {n.value.id for n in ast.walk(block) if isinstance(n, ast.Subscript)
                 and isinstance(n.ctx, ast.Load) and isinstance(n.value, ast.Name)}
        read_after_write |= (reads & written) - own
        written |= own
    inner = [n for n in sorted(order) if n in read_after_write and n not in declared]
    params = [n for n in sorted(order) if n not in inner and n not in declared]
    head = ", ".join(f'{n}: T.Buffer({shapes[n]}, "float32")' for n in params)
    lines = [f"{n} = T.alloc_buffer({shapes[n]})" for n in inner]
    text = f"@T.prim_func\ndef main({head}):\n" + textwrap.indent(
        "\n".join(lines + [body]), "    ")
    return from_source(text), shapes


def names_for(sch, where):
    """Blocks by their names, loops by theirs (of the block the text speaks of)."""
    root = sch.get_block("root")
    blocks = {sch.get(b).name_hint: b for b in sch.get_child_blocks(root)}
    chosen = re.search(r"of (?:block )?([A-Z]\w*)", where)
    first = [chosen.group(1)] if chosen and chosen.group(1) in blocks else []
    scope = dict(blocks)
    for name in [*first, *blocks]:
        for loop in sch.get_loops(blocks[name]):
            scope.setdefault(sch.get(loop).loop_var.name, loop)
    return scope
