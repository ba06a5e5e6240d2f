"""Declared properties of external data."""

import numpy as np
import pytest

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, DTypeError, LayoutError
from dalify.data import DALIDataType
from dalify.sources.declaration import Declaration, declarations


def declared(num_outputs=None, dtype=None, ndim=None, layout=None):
    return declarations(num_outputs, dtype=dtype, ndim=ndim, layout=layout)


def test_one_value_applies_to_all_outputs_and_a_short_list_to_the_first():
    assert declared() == [Declaration(None, None, "")]
    assert declared(layout="HWC", dtype=np.uint8) == [Declaration(DALIDataType.UINT8, 3, "HWC")]
    assert declared(layout=["HW"], ndim=(2,)) == [Declaration(None, 2, "HW")]
    assert declared(2, dtype="float32", ndim=1) == [Declaration(DALIDataType.FLOAT, 1, "")] * 2
    assert declared(3, layout=["HW", "C"], ndim=[2]) == [
        Declaration(None, 2, "HW"),
        Declaration(None, 1, "C"),
        Declaration(None, None, ""),
    ]
    assert declared(dtype=DALIDataType.NO_TYPE, ndim=np.int64(0)) == [Declaration(None, 0, "")]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"num_outputs": 0}, ArgumentValueError, "num_outputs must be at least 1; got 0"),
        ({"dtype": "nonsense"}, ArgumentTypeError, "dtype must be a data type; got 'nonsense'"),
        ({"dtype": 3}, ArgumentTypeError, "dtype must be a data type; got 3"),
        ({"dtype": object}, DTypeError, "arrays with elements of type object are not supported"),
        ({"ndim": "a"}, ArgumentTypeError, "ndim must be an integer; got 'a'"),
        ({"ndim": True}, ArgumentTypeError, "ndim must be an integer; got True"),
        ({"ndim": -1}, ArgumentValueError, "ndim must not be negative; got -1"),
        ({"layout": 5}, ArgumentTypeError, "layout must be a string; got 5"),
        ({"layout": ["HW", "C"]}, ArgumentValueError, "layout has 2 items for 1 output"),
        ({"num_outputs": 2, "ndim": [1, 2, 3]}, ArgumentValueError, "ndim has 3 items for 2 outputs"),
        ({"layout": "HW", "ndim": 3}, LayoutError, "the layout 'HW' has 2 letters, but ndim is 3"),
    ],
)
def test_refusals(arguments, error, message):
    with pytest.raises(error, match=message):
        declared(**arguments)
