"""The replacement for torch's DataLoader that runs known datasets and transforms in dalify.

In the order in which data pass through them:

- `loader`: the DataLoader; `choice`: what computes its batches, and why; `accelerating`: loaders that others created.
- `iterators`: threads in place of torch's workers; `hybrid`: torch's workers with a faster dataset.
- `fetching`: batches from indices; `collating`; `datasets`: Subset and ConcatDataset, changes by the user.
- `known`: where torchvision's datasets have files and labels; `sources`: reads and decodes them.
- `lowering`: converts transforms to a `plan`; `steps` and `torchvision_steps`: the transforms; `lazy_image`: what they
  change; `draws`: their random numbers; `registration`: transforms and datasets of users.
- `hints`: notes on errors; `resuming`: the state of a loader; `ssd`: COCO with the transforms of SSD.
"""
