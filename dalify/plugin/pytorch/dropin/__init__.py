"""The replacement for torch's DataLoader that runs supported datasets and transforms in dalify.

The modules, in the order of processing:

- `loader`: the DataLoader; `choice`: selects the implementation; `accelerating`: converts existing loaders.
- `iterators`: threads in place of torch's workers; `hybrid`: torch's workers with a faster dataset.
- `fetching`: batches from indices; `collating`; `datasets`: Subset and ConcatDataset, changes by the user.
- `known`: files and labels of torchvision's datasets; `hugging_face`: those of Hugging Face; `sources`: reads and
  decodes them; `encoded_image`: images that are decoded when they are used.
- `lowering`: converts transforms to a `plan`; `steps` and `torchvision_steps`: the transforms; `lazy_image`: their
  images; `draws`: their random numbers; `registration`: transforms and datasets of users.
- `gathering`: batches of datasets in memory; `getitem`: evaluates ``__getitem__`` of classes; `columns`: their values.
- `hints`: notes on errors; `resuming`: the state of a loader; `ssd`: COCO with the transforms of SSD.
"""
