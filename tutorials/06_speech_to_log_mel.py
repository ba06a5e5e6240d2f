# %% [markdown]
"""# From speech to log-mel spectrograms

Networks that listen rarely get samples of sound: they get pictures of it, with time to the right, pitch upwards, and
loudness as brightness. This tutorial makes such pictures of short recordings, one operator after the other, and looks
at each step. The recordings are vowels, synthesised on the spot: `aia`, `eou`, and so on.

Each cell can be run; pictures go to `out/tutorials/`.
"""

# %%
from pathlib import Path

import numpy as np
import torch

from dalify import fn, pipeline_def
from dalify.plugin.pytorch import DALIGenericIterator, LastBatchPolicy
from pictures import contact_sheet
from sounds import SAMPLE_RATE, WORDS, make_sounds

OUT = Path("out/tutorials")
FOLDER = make_sounds(OUT / "speech", sounds_per_word=12)
BATCH_SIZE = 8
BANDS = 64

# %% [markdown]
"""Two little functions draw what we get: a wave, and a table of numbers in colors. Nothing of them is dalify's."""


# %%
def drawn_wave(sound: np.ndarray, height: int = 200, width: int = 240) -> np.ndarray:
    """Largest and smallest sample of each column; the wave fills the picture where it is 1."""
    picture = np.full((height, width, 3), 255, np.uint8)
    for column, part in enumerate(np.array_split(sound, width)):
        top, bottom = ((1 - value) / 2 * (height - 1) for value in (part.max(), part.min()))
        picture[max(0, int(top)) : min(height, int(bottom) + 1), column] = (30, 90, 160)
    return picture


def drawn_table(table: np.ndarray, height: int = 220) -> np.ndarray:
    """Low rows at the bottom, dark to bright."""
    level = (table - table.min()) / max(np.ptp(table), 1e-9)
    stops = np.array([[0, 0, 40], [90, 20, 120], [220, 70, 70], [255, 230, 120]])
    colors = np.stack([np.interp(level, np.linspace(0, 1, 4), stops[:, channel]) for channel in range(3)], -1)
    rows = np.arange(height - 1, -1, -1) * len(table) // height
    return colors[rows].astype(np.uint8)


# %% [markdown]
"""## 1. Reading and decoding

The reader knows nothing of sound: it hands out the bytes of files, and a label for each class folder.
`fn.decoders.audio` makes samples between -1 and 1 of them, and tells the sampling rate. WAV, FLAC, Ogg, MP3: it looks
at the bytes, not at the name. `downmix` averages the channels, and a `sample_rate` of our own would resample on the
way.
"""


# %%
@pipeline_def(batch_size=BATCH_SIZE, num_threads=2, seed=4)
def decoded():
    encoded, labels = fn.readers.file(file_root=str(FOLDER), random_shuffle=True)
    sound, rate = fn.decoders.audio(encoded, downmix=True)
    return sound, rate, labels


pipe = decoded()
pipe.build()
sounds, rates, labels = pipe.run()
print("samples:", [sounds.at(i).shape[0] for i in range(BATCH_SIZE)], "at", rates.at(0).item(), "Hz")
names = [WORDS[labels.at(i).item()] for i in range(BATCH_SIZE)]
contact_sheet(OUT / "06_waves.png", [drawn_wave(sounds.at(i)) for i in range(BATCH_SIZE)], names, columns=4, cell=240)

# %% [markdown]
"""## 2. Cutting off the silence

There is silence before and after each word, of any length. `fn.nonsilent_region` gives two numbers per sample, where
the sound begins and how long it lasts: windows that are within 40 dB of the loudest one count. They are nodes like all
others, so `fn.slice` takes them.
"""


# %%
@pipeline_def(batch_size=BATCH_SIZE, num_threads=2, seed=4)
def trimmed():
    encoded, _ = fn.readers.file(file_root=str(FOLDER), random_shuffle=True)
    sound, _ = fn.decoders.audio(encoded, downmix=True)
    begin, length = fn.nonsilent_region(sound, cutoff_db=-40.0, window_length=512, reset_interval=8192)
    return fn.slice(sound, begin, length, axes=[0]), begin, length


pipe = trimmed()
pipe.build()
cut, begins, lengths = pipe.run()
seconds = [f"{begins.at(i) / SAMPLE_RATE:.2f} s + {lengths.at(i) / SAMPLE_RATE:.2f} s" for i in range(BATCH_SIZE)]
captions = [f"{name}: {text}" for name, text in zip(names, seconds, strict=True)]
contact_sheet(OUT / "06_trimmed.png", [drawn_wave(cut.at(i)) for i in range(BATCH_SIZE)], captions, columns=4, cell=240)

# %% [markdown]
"""## 3. The spectrogram

`fn.spectrogram` cuts the sound into windows of 25 ms, 10 ms apart, and takes the Fourier transform of each. Before it,
`fn.preemphasis_filter` raises the high frequencies, which are weak in speech: each sample minus nearly all of the one
before it.

The result is `[frequencies, time]`, layout "ft". Powers span many orders of magnitude: only in decibels, the logarithm,
there is something to be seen.
"""


# %%
@pipeline_def(batch_size=BATCH_SIZE, num_threads=2, seed=4)
def spectra():
    encoded, _ = fn.readers.file(file_root=str(FOLDER), random_shuffle=True)
    sound, _ = fn.decoders.audio(encoded, downmix=True)
    begin, length = fn.nonsilent_region(sound, cutoff_db=-40.0, window_length=512, reset_interval=8192)
    sound = fn.slice(sound, begin, length, axes=[0])
    plain = fn.spectrogram(sound, nfft=512, window_length=400, window_step=160)
    raised = fn.spectrogram(fn.preemphasis_filter(sound), nfft=512, window_length=400, window_step=160)
    return plain, *(fn.to_decibels(spectrum, cutoff_db=-70.0) for spectrum in (plain, raised))


pipe = spectra()
pipe.build()
powers, decibels, raised = pipe.run()
print("layout:", powers.layout(), "shape:", powers.at(0).shape)
tables = [table.at(i) for i in range(3) for table in (powers, decibels, raised)]
captions = [f"{name}: {what}" for name in names[:3] for what in ("power", "decibels", "with pre-emphasis")]
contact_sheet(OUT / "06_spectra.png", [drawn_table(table) for table in tables], captions, columns=3, cell=240)

# %% [markdown]
"""## 4. Mel: as many bands as the ear tells apart

High frequencies are told apart less well than low ones. `fn.mel_filter_bank` sums 257 frequencies up in 64 bands,
narrow ones below and wide ones above. Last, `fn.normalize` brings each band to mean 0 and deviation 1 over time.

This is the whole pipeline, as a network would train with it. Words differ in length, so a batch is a list; `fn.pad`
makes all as long as the longest.
"""


# %%
@pipeline_def(batch_size=BATCH_SIZE, num_threads=2, seed=4)
def log_mel(is_training: bool = False):
    encoded, labels = fn.readers.file(file_root=str(FOLDER), random_shuffle=True, name="speech")
    sound, _ = fn.decoders.audio(encoded, downmix=True, sample_rate=float(SAMPLE_RATE))
    begin, length = fn.nonsilent_region(sound, cutoff_db=-40.0, window_length=512, reset_interval=8192)
    sound = fn.slice(sound, begin, length, axes=[0])
    if is_training:  # another speed, hence another pitch, for every word and epoch
        sound = fn.audio_resample(sound, scale=fn.random.uniform(range=[0.85, 1.15]))
    sound = fn.preemphasis_filter(sound, preemph_coeff=0.97)
    spectrum = fn.spectrogram(sound, nfft=512, window_length=400, window_step=160)
    mel = fn.mel_filter_bank(spectrum, nfilter=BANDS, sample_rate=float(SAMPLE_RATE))
    decibels = fn.to_decibels(mel, cutoff_db=-70.0)
    features = fn.normalize(decibels, axes=[1], epsilon=1e-3)
    return fn.pad(features, fill_value=0.0), labels, fn.pad(decibels, fill_value=-70.0)


pipe = log_mel()
pipe.build()
features, labels, decibels = pipe.run()
print("padded, so it stacks:", features.as_array().shape)
tables = [drawn_table(decibels.at(i)) for i in range(4)] + [drawn_table(table) for table in features.as_array()[:4]]
captions = [f"{name}: log-mel" for name in names[:4]] + [f"{name}: normalised, padded" for name in names[:4]]
contact_sheet(OUT / "06_log_mel.png", tables, captions, columns=4, cell=240)

# %% [markdown]
"""## 5. Into a network

Enough to tell the five words apart, whoever "speaks" them.
"""

# %%
iterator = DALIGenericIterator(
    log_mel(is_training=True),
    ["features", "label", "decibels"],
    reader_name="speech",
    last_batch_policy=LastBatchPolicy.PARTIAL,
    auto_reset=True,
)
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Conv1d(BANDS, 32, 9, stride=2),
    torch.nn.ReLU(),
    torch.nn.Conv1d(32, 32, 9, stride=2),
    torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool1d(6),
    torch.nn.Flatten(),
    torch.nn.Linear(32 * 6, len(WORDS)),
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(6):
    right = total = 0
    for (batch,) in iterator:
        labels = batch["label"].squeeze(-1).long()
        scores = model(batch["features"])
        loss = torch.nn.functional.cross_entropy(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += int((scores.argmax(1) == labels).sum())
        total += len(labels)
    print(f"epoch {epoch + 1}: {right} of {total} words right")

# %% [markdown]
"""| step | operator | what comes out |
|---|---|---|
| bytes of files | `fn.readers.file` | `[bytes]`, and a label |
| samples | `fn.decoders.audio` | `[samples]`, -1 to 1, and the rate |
| without silence | `fn.nonsilent_region`, `fn.slice` | fewer samples |
| high frequencies raised | `fn.preemphasis_filter` | as many |
| windows and their spectra | `fn.spectrogram` | `[frequencies, time]`, layout "ft" |
| bands of pitch | `fn.mel_filter_bank` | `[bands, time]` |
| loudness as heard | `fn.to_decibels` | same |
| cepstrum, for older recognisers | `fn.mfcc` | `[coefficients, time]` |

How fast it is beside the real DALI: `python -m benchmarks speech`.
"""
