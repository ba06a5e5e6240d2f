# %% [markdown]
"""# From speech to log-mel spectrograms

The input of speech networks is usually a spectrogram: an image with time on the horizontal axis, frequency on the
vertical axis, and loudness as brightness. This tutorial computes spectrograms of short recordings and shows the
result of each operator. The recordings are synthesized vowels: `aia`, `eou`, and so on.

You can run each cell. Images are written to `out/tutorials/`.
"""

# %%
from pathlib import Path

import numpy as np
import torch

from contact_sheets import contact_sheet
from dalify import fn, pipeline_def
from dalify.plugin.pytorch import DALIGenericIterator, LastBatchPolicy
from recordings import SAMPLE_RATE, WORDS, make_recordings

OUT = Path("out/tutorials")
FOLDER = make_recordings(OUT / "speech", recordings_per_word=12)
BATCH_SIZE = 8
BANDS = 64

# %% [markdown]
"""Two small functions, which do not use dalify, draw a waveform and a matrix."""


# %%
def drawn_wave(audio: np.ndarray, height: int = 200, width: int = 240) -> np.ndarray:
    """Draw the maximum and minimum sample of each column; an amplitude of 1 fills the image."""
    canvas = np.full((height, width, 3), 255, np.uint8)
    for column, part in enumerate(np.array_split(audio, width)):
        top, bottom = ((1 - value) / 2 * (height - 1) for value in (part.max(), part.min()))
        canvas[max(0, int(top)) : min(height, int(bottom) + 1), column] = (30, 90, 160)
    return canvas


def drawn_table(table: np.ndarray, height: int = 220) -> np.ndarray:
    """Draw a matrix with row 0 at the bottom, low values dark and high values bright."""
    level = (table - table.min()) / max(np.ptp(table), 1e-9)
    stops = np.array([[0, 0, 40], [90, 20, 120], [220, 70, 70], [255, 230, 120]])
    colors = np.stack([np.interp(level, np.linspace(0, 1, 4), stops[:, channel]) for channel in range(3)], -1)
    rows = np.arange(height - 1, -1, -1) * len(table) // height
    return colors[rows].astype(np.uint8)


# %% [markdown]
"""## 1. Reading and decoding

The reader returns the bytes of each file and the label of its class folder. `fn.decoders.audio` decodes them to samples
between -1 and 1 and returns the sampling rate. It detects the format (WAV, FLAC, Ogg, MP3) from the bytes, not from
the name. `downmix` averages the channels. With `sample_rate` the decoder also resamples.
"""


# %%
@pipeline_def(batch_size=BATCH_SIZE, num_threads=2, seed=4)
def decoded():
    encoded, labels = fn.readers.file(file_root=str(FOLDER), random_shuffle=True)
    audio, rate = fn.decoders.audio(encoded, downmix=True)
    return audio, rate, labels


pipe = decoded()
pipe.build()
recordings, rates, labels = pipe.run()
print("samples:", [recordings.at(i).shape[0] for i in range(BATCH_SIZE)], "at", rates.at(0).item(), "Hz")
names = [WORDS[labels.at(i).item()] for i in range(BATCH_SIZE)]
contact_sheet(
    OUT / "06_waves.png", [drawn_wave(recordings.at(i)) for i in range(BATCH_SIZE)], names, columns=4, cell=240
)

# %% [markdown]
"""## 2. Removing silence

Each recording has silence of varying length before and after the word. `fn.nonsilent_region` returns two numbers per
sample: the start and the length of the region in which the power of a window is within 40 dB of the loudest window.
Both are graph values, so `fn.slice` accepts them.
"""


# %%
@pipeline_def(batch_size=BATCH_SIZE, num_threads=2, seed=4)
def trimmed():
    encoded, _ = fn.readers.file(file_root=str(FOLDER), random_shuffle=True)
    audio, _ = fn.decoders.audio(encoded, downmix=True)
    begin, length = fn.nonsilent_region(audio, cutoff_db=-40.0, window_length=512, reset_interval=8192)
    return fn.slice(audio, begin, length, axes=[0]), begin, length


pipe = trimmed()
pipe.build()
cut, begins, lengths = pipe.run()
seconds = [f"{begins.at(i) / SAMPLE_RATE:.2f} s + {lengths.at(i) / SAMPLE_RATE:.2f} s" for i in range(BATCH_SIZE)]
captions = [f"{name}: {text}" for name, text in zip(names, seconds, strict=True)]
contact_sheet(OUT / "06_trimmed.png", [drawn_wave(cut.at(i)) for i in range(BATCH_SIZE)], captions, columns=4, cell=240)

# %% [markdown]
"""## 3. The spectrogram

`fn.spectrogram` divides the audio into windows of 25 ms with a step of 10 ms and computes the Fourier transform of
each. Before it, `fn.preemphasis_filter` amplifies the high frequencies, which are weak in speech: it subtracts nearly
all of the previous sample from each sample.

The result is `[frequencies, time]`, layout "ft". Powers span many orders of magnitude, so we convert them to decibels.
"""


# %%
@pipeline_def(batch_size=BATCH_SIZE, num_threads=2, seed=4)
def spectra():
    encoded, _ = fn.readers.file(file_root=str(FOLDER), random_shuffle=True)
    audio, _ = fn.decoders.audio(encoded, downmix=True)
    begin, length = fn.nonsilent_region(audio, cutoff_db=-40.0, window_length=512, reset_interval=8192)
    audio = fn.slice(audio, begin, length, axes=[0])
    plain = fn.spectrogram(audio, nfft=512, window_length=400, window_step=160)
    raised = fn.spectrogram(fn.preemphasis_filter(audio), nfft=512, window_length=400, window_step=160)
    return plain, *(fn.to_decibels(spectrum, cutoff_db=-70.0) for spectrum in (plain, raised))


pipe = spectra()
pipe.build()
powers, decibels, raised = pipe.run()
print("layout:", powers.layout(), "shape:", powers.at(0).shape)
tables = [table.at(i) for i in range(3) for table in (powers, decibels, raised)]
captions = [f"{name}: {what}" for name in names[:3] for what in ("power", "decibels", "with pre-emphasis")]
contact_sheet(OUT / "06_spectra.png", [drawn_table(table) for table in tables], captions, columns=3, cell=240)

# %% [markdown]
"""## 4. Mel bands

The ear distinguishes high frequencies less well than low ones. `fn.mel_filter_bank` sums 257 frequencies in 64 bands,
narrow ones at low frequencies and wide ones at high frequencies. Then `fn.normalize` normalizes each band to mean 0 and
standard deviation 1 over time.

This is the complete pipeline for training. Words differ in length, so a batch is a list; `fn.pad` pads all samples to
the length of the longest.
"""


# %%
@pipeline_def(batch_size=BATCH_SIZE, num_threads=2, seed=4)
def log_mel(is_training: bool = False):
    encoded, labels = fn.readers.file(file_root=str(FOLDER), random_shuffle=True, name="speech")
    audio, _ = fn.decoders.audio(encoded, downmix=True, sample_rate=float(SAMPLE_RATE))
    begin, length = fn.nonsilent_region(audio, cutoff_db=-40.0, window_length=512, reset_interval=8192)
    audio = fn.slice(audio, begin, length, axes=[0])
    if is_training:  # a random speed, which also changes the pitch
        audio = fn.audio_resample(audio, scale=fn.random.uniform(range=[0.85, 1.15]))
    audio = fn.preemphasis_filter(audio, preemph_coeff=0.97)
    spectrum = fn.spectrogram(audio, nfft=512, window_length=400, window_step=160)
    mel = fn.mel_filter_bank(spectrum, nfilter=BANDS, sample_rate=float(SAMPLE_RATE))
    decibels = fn.to_decibels(mel, cutoff_db=-70.0)
    features = fn.normalize(decibels, axes=[1], epsilon=1e-3)
    return fn.pad(features, fill_value=0.0), labels, fn.pad(decibels, fill_value=-70.0)


pipe = log_mel()
pipe.build()
features, labels, decibels = pipe.run()
print("shape of the padded batch:", features.as_array().shape)
tables = [drawn_table(decibels.at(i)) for i in range(4)] + [drawn_table(table) for table in features.as_array()[:4]]
captions = [f"{name}: log-mel" for name in names[:4]] + [f"{name}: normalized, padded" for name in names[:4]]
contact_sheet(OUT / "06_log_mel.png", tables, captions, columns=4, cell=240)

# %% [markdown]
"""## 5. Training a network

The features are sufficient to classify the five words for every synthesized voice.
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
    print(f"epoch {epoch + 1}: {right} of {total} words correct")

# %% [markdown]
"""| step | operator | output |
|---|---|---|
| bytes of files | `fn.readers.file` | `[bytes]`, and a label |
| samples | `fn.decoders.audio` | `[samples]`, -1 to 1, and the sampling rate |
| remove silence | `fn.nonsilent_region`, `fn.slice` | fewer samples |
| amplify high frequencies | `fn.preemphasis_filter` | the same shape |
| spectra of windows | `fn.spectrogram` | `[frequencies, time]`, layout "ft" |
| mel bands | `fn.mel_filter_bank` | `[bands, time]` |
| decibels | `fn.to_decibels` | the same shape |
| cepstral coefficients | `fn.mfcc` | `[coefficients, time]` |

`python -m benchmarks speech` compares the speed with the real DALI.
"""
