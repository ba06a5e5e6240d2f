"""What a front for Gaudi's programs has to do, and which test holds it.

| to be held | by |
|---|---|
| published programs run with the root of their imports changed | `test_programs`, `test_snippets` |
| … or as they are, with the names lent | `test_shim`, `tests/documents/test_gaudi_programs` |
| constructors of all times | `test_pipes.test_constructors` |
| operators made and called anywhere | `test_programs.test_clip` (constructor), `test_coco` (definegraph) |
| `build`, `iter_init`, `run`, `StopIteration`, repeats, `close` | `test_pipes` |
| outputs for NumPy, torch and DLPack | `test_iterators.test_other_packages_take_outputs` |
| dimensions are counted from the fastest | `test_operators.test_dimensions_are_counted_from_the_fastest` |
| types are strings | `test_pipes.test_types_are_texts` |
| slices, remainders, `valid` | `test_operators.test_slices_share_the_dataset`, `test_readers` |
| partial batches | `test_programs.test_coco`, `test_iterators.test_the_last_batch` |
| names of devices | `test_pipes.test_devices` |
| `device=` of operators | `test_snippets.test_snippet` |
| external readers: both constructors, paths and contents | `test_programs.test_clip`, `test_queue`, `test_pipes` |
| memory of batches, int64 labels | `test_iterators` |
| seeds alone decide on draws | `test_snippets.test_draws_depend_only_on_the_seed` |
| messages name operator, argument, value, line | `test_operators.test_mistakes_are_told`, `test_pipes` |
| the loaders: call, class, fallback, eligible combinations, batches, choice | `test_loaders`, `test_ssd_loader` |
"""
