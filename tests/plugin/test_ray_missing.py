"""Without Ray, the error of its plugin contains the package to install."""

from __future__ import annotations

from tests.helpers.programs import finished

_PROGRAM = """
import sys
sys.modules["ray"] = None  # as if it were not installed
from dalify import fn, pipeline_def
from dalify.base.errors import MissingPackageError
from dalify.plugin.ray import RayPipeline

@pipeline_def(batch_size=2, num_threads=1)
def pipeline():
    return fn.random.uniform(range=[0.0, 1.0])

try:
    RayPipeline(pipeline(), workers=2).run()
except MissingPackageError as error:
    print(error)
"""


def test_one_error_names_the_extra() -> None:
    status, out, errors = finished(_PROGRAM)
    assert status == 0, errors
    assert out.splitlines() == [
        "dalify.plugin.ray needs the package 'ray', which is not installed.",
        "  Install it with: pip install 'dalify[ray]'",
    ]
