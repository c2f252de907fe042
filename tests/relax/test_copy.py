"""copy_with_new_vars: a function that can stand beside the one it was copied from."""

from mlc_lab import relax
from mlc_lab.ir.structural import structural_equal
from mlc_lab.relax.analysis import defined_symbolic_vars
from mlc_lab.script import relax as R


def test_a_copy_has_variables_and_symbolic_dimensions_of_its_own():
    @R.function
    def func(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        with R.dataflow():
            y = R.add(x, x)
            R.output(y)
        return y

    copy = relax.utils.copy_with_new_vars(func)
    assert structural_equal(copy, func)
    assert copy.params[0] is not func.params[0]
    (old,), (new,) = defined_symbolic_vars(func), defined_symbolic_vars(copy)
    assert old is not new and old.name == new.name
    assert copy.ret_struct_info.dims[0] is new
