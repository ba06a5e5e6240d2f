"""With Lightning, Accelerate and the Trainer of Transformers, dalify computes the same batches as torch."""

from __future__ import annotations

import logging
import os
from typing import Any

import pytest
import torch

from dalify.plugin.pytorch import DataLoader, accelerate
from tests.plugin.dropin.torch_reference import TorchLoader, cifar, same, seed, transforms

# All of them look for torchvision, which is to be imported by our helper, above.
hf_accelerate = pytest.importorskip("accelerate")
hf_transformers = pytest.importorskip("transformers")
lightning = pytest.importorskip("lightning.pytorch")

pytestmark = pytest.mark.filterwarnings("ignore")  # theirs

TRAINING = transforms.Compose([transforms.RandomCrop(32, padding=4), transforms.ToTensor()])


class Classifier(lightning.LightningModule):
    """Keeps the batches that it is trained with."""

    def __init__(self, kind: Any, **options: Any) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3 * 32 * 32, 10)
        self.kind, self.options = kind, options
        self.seen: list[Any] = []

    def training_step(self, batch: Any, number: int) -> Any:
        images, labels = batch
        self.seen.append([images.clone(), labels.clone()])
        return torch.nn.functional.cross_entropy(self.layer(images.flatten(1)), labels)

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.01)

    def train_dataloader(self) -> Any:
        return self.kind(cifar(TRAINING), batch_size=8, shuffle=True, **self.options)


def trainer_of(**options: Any) -> Any:
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    return lightning.Trainer(accelerator="cpu", devices=1, enable_checkpointing=False, **quiet, **options)


def fit(kind: Any, **options: Any) -> Any:
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    seed()
    model = Classifier(kind, **options.pop("loader", {}))
    trainer = trainer_of(max_epochs=2, **options)
    trainer.fit(model)
    return model.seen, trainer.train_dataloader


@pytest.fixture(autouse=True)
def _no_group_is_left():
    """Remove torch's process group, which frameworks create and store in the environment, for other tests."""
    environment = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(environment)
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize("strategy", ["auto", "ddp"])
def test_lightning(strategy):
    ours, loader = fit(DataLoader, strategy=strategy, loader={"on_fallback": "raise"})
    theirs, _ = fit(TorchLoader, strategy=strategy)
    same(ours, theirs)
    assert len(ours) == 10
    assert type(loader) is DataLoader
    assert loader.explain().mode == "full"
    assert loader.on_fallback == "raise"
    is_injected = isinstance(loader.sampler, torch.utils.data.DistributedSampler)
    assert is_injected == (strategy == "ddp")


class SaveAt(lightning.Callback):
    """Saves a checkpoint after the third batch."""

    def __init__(self, path: Any) -> None:
        self.path = path

    def on_train_batch_end(self, trainer: Any, *arguments: Any) -> None:
        if trainer.global_step == 3:
            trainer.save_checkpoint(self.path)


def test_lightning_continues_in_the_middle_of_an_epoch(tmp_path):
    """Its checkpoints contain the state of a loader if it has one; torch's loader has none."""

    def train(*callbacks: Any, **options: Any) -> Any:
        model = Classifier(DataLoader)
        trainer_of(max_epochs=1, callbacks=list(callbacks)).fit(model, **options)
        return model.seen

    seed()
    whole = train(SaveAt(tmp_path / "checkpoint"))
    torch.manual_seed(99)
    rest = train(ckpt_path=tmp_path / "checkpoint")
    same([labels for _, labels in rest], [labels for _, labels in whole[3:]])


def test_loaders_built_by_accelerate_can_be_accelerated():
    accelerator = hf_accelerate.Accelerator(cpu=True)

    def run(kind: Any) -> list[Any]:
        seed()
        loader = accelerator.prepare(kind(cifar(TRAINING), batch_size=8, shuffle=True))
        if kind is DataLoader:
            assert type(loader.base_dataloader) is TorchLoader  # acceleration is lost here
            assert accelerate(loader) is loader
            assert loader.explain().mode == "full"
        return [batch for _ in range(2) for batch in loader]

    same(run(DataLoader), run(TorchLoader))


@pytest.mark.parametrize("process", [0, 1])
@pytest.mark.parametrize("even_batches", [False, True])
def test_accelerate_shards(process, even_batches):
    def run(kind: Any) -> list[Any]:
        seed()
        shard = hf_accelerate.data_loader.prepare_data_loader(
            kind(cifar(TRAINING, 37), batch_size=8, shuffle=True, generator=torch.Generator().manual_seed(3)),
            num_processes=2,
            process_index=process,
            even_batches=even_batches,
            put_on_device=False,
        )
        shard.rng_types = None  # there is no second process to agree with
        if kind is DataLoader:
            assert accelerate(shard).explain().mode == "full"
        return list(shard)

    ours = run(DataLoader)
    same(ours, run(TorchLoader))
    assert len(ours) == (3 if even_batches or process == 0 else 2)


class Network(torch.nn.Module):
    """A model for Transformers that keeps the batches."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3 * 32 * 32, 10)
        self.seen: list[Any] = []

    def forward(self, images: Any, labels: Any) -> dict[str, Any]:
        self.seen.append([images.clone(), labels.clone()])
        return {"loss": torch.nn.functional.cross_entropy(self.layer(images.flatten(1)), labels)}


class FastTrainer(hf_transformers.Trainer):
    """The code from our documentation."""

    def get_train_dataloader(self) -> Any:
        self.loader = accelerate(super().get_train_dataloader())
        return self.loader


def by_name(samples: list[Any]) -> dict[str, Any]:
    images, labels = torch.utils.data.default_collate(samples)
    return {"images": images, "labels": labels}


@pytest.mark.parametrize(("workers", "mode"), [(0, "full"), (1, "hybrid")])
def test_trainer(tmp_path, workers, mode):
    arguments = hf_transformers.TrainingArguments(
        output_dir=str(tmp_path),
        use_cpu=True,
        num_train_epochs=2,
        per_device_train_batch_size=8,
        dataloader_num_workers=workers,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        remove_unused_columns=False,
    )

    def run(kind: Any) -> list[Any]:
        seed()
        model = Network()
        trainer = kind(model=model, args=arguments, train_dataset=cifar(TRAINING), data_collator=by_name)
        trainer.train()
        if kind is FastTrainer:
            assert trainer.loader.explain().mode == mode
        return model.seen

    ours = run(FastTrainer)
    same(ours, run(hf_transformers.Trainer))
    assert len(ours) == 10
