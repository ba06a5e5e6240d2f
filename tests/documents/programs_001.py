"""Gaudi's description of its PyTorch packages: the example of its loader, as published.

A test sets the names that the example uses, and lends the name of the package to dalify.
"""

dataset = args = train_sampler = None


def loader():
    import habana_dataloader
    return habana_dataloader.HabanaDataLoader(
        dataset, batch_size=args.batch_size, sampler=train_sampler,
        num_workers=args.workers, pin_memory=True, drop_last=True)
