"""Cases of operators: random numbers."""

from __future__ import annotations

from tests.operators.battery.case import DRAWN, Case, exact_case
from tests.operators.battery.data import FLOATS, POSITIVE

CASES: dict[str, Case] = {
    "random.beta": exact_case(alpha=2.0, beta=POSITIVE, shape=[3, 4], not_compared_with_dali=DRAWN),
    "random.choice": exact_case(FLOATS, not_compared_with_dali=DRAWN),
    "random.coin_flip": exact_case(shape=[10], not_compared_with_dali=DRAWN),
    "random.normal": exact_case(mean=3.0, stddev=2.0, shape=[10], not_compared_with_dali=DRAWN),
    "random.uniform": exact_case(range=[2.0, 5.0], shape=[10], not_compared_with_dali=DRAWN),
}
