"""What happens to a graph between tracing and running: ``Graph -> Graph``, one verb per file, in the order of ``PASSES``.

Pruning needs no pass of its own: a graph is found by walking back from its outputs, and every rewrite drops what nothing needs.
"""

from dalify.passes.infer_specs import infer_specs
from dalify.passes.place import place
from dalify.passes.split_branches import split_branches

__all__ = ["PASSES", "infer_specs", "place", "split_branches"]

PASSES = (infer_specs, split_branches, place)
