"""Annotations that name loops and iterators follow them, or the step is refused."""

import pytest

from mlc_lab.script import from_source

from .common import kept, refused


def noted(loop="", block=""):
    return from_source(f"""@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), D: T.Buffer((8, 8), "float32")):
    for i in range(8):
        for j in T.serial(8{', annotations={"x": [i]}' if loop else ""}):
            with T.block("D"):
                v, w = T.axis.remap("SS", [i, j])
                T.block_attr({{{block}}})
                D[v, w] = A[v, w] * T.float32(2)
""")


def loops(sch):
    return sch.get_loops("D")


STEPS = {
    "split": lambda s: s.split(loops(s)[0], [None, 3]),
    "fuse": lambda s: s.fuse(*loops(s)),
    "transform_block_layout": lambda s: s.transform_block_layout("D", lambda a, b: (b, a)),
    "blockize": lambda s: s.blockize(loops(s)[1]),
}


@pytest.mark.parametrize("step", STEPS)
def test_an_annotation_that_names_an_iterator_follows_it(step):
    kept(noted(block='"x": v, "y": [1, w + 1]'), STEPS[step])


@pytest.mark.parametrize("step", ["split", "fuse", "blockize"])
def test_an_annotation_of_a_block_that_names_a_loop_follows_it(step):
    kept(noted(block='"x": {"of": i * 2 + 1}'), STEPS[step])


def test_an_annotation_of_a_loop_that_names_another_follows_it():
    kept(noted(loop="i"), STEPS["split"])


def test_an_annotation_does_not_come_to_name_what_is_not_around_it():
    error = refused(noted(loop="i"), lambda s: s.reorder(*loops(s)[::-1]),
                    "annotations_stay_in_scope")
    assert "names i" in str(error) and 'unannotate(..., "x")' in str(error)
    refused(noted(block='"x": i'), STEPS["transform_block_layout"], "annotations_stay_in_scope")


def test_transform_block_layout_keeps_how_loops_run():
    """A new loop that is an old one runs like it; no note is lost."""
    def noted_loops(sch):
        sch.annotate(loops(sch)[1], "pragma_note", 7)
        sch.parallel(loops(sch)[0])
        sch.transform_block_layout("D", lambda i, j: (j, i // 2, i % 2))
        assert sch.get(loops(sch)[0]).annotations == {"pragma_note": 7}
        sch.transform_block_layout("D", lambda j, a, b: (j, a * 2 + b))
        sch.bind(loops(sch)[1], "threadIdx.x")
        sch.transform_block_layout("D", lambda j, i: (i, j))
        assert sch.get(loops(sch)[0]).thread_binding.thread_tag == "threadIdx.x"

    kept(noted(), noted_loops)
    refused(noted(), lambda s: (s.annotate(loops(s)[1], "note", 7),
                                s.transform_block_layout("D", lambda i, j: i * 8 + j)),
            "loop_has_no_annotation")


def test_both_halves_of_a_reduction_have_the_annotations_of_the_block():
    sch = kept(from_source("""
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), D: T.Buffer((8,), "float32")):
    for i, j in T.grid(8, 8):
        with T.block("D"):
            v, w = T.axis.remap("SR", [i, j])
            T.block_attr({"note": "here", "at": [v, w, i, j]})
            with T.init():
                D[v] = T.float32(0)
            D[v] = D[v] + A[v, w]
"""), lambda s: s.decompose_reduction("D", loops(s)[0]))
    init, update = (sch.get(sch.get_block(name)) for name in ("D_init", "D_update"))
    assert init.annotations["note"] == update.annotations["note"] == "here"
    assert [str(e) for e in init.annotations["at"]] == ["v", "0", "i_init", "0"]
