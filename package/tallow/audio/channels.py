"""Mix several channels to one, weighted by the position of each speaker.

In a film with 5.1 sound, voices are on the centre channel; a plain mean would give it a weight of one sixth, as much as
the subwoofer. The weights are those of ffmpeg, which openai-whisper uses to read files. They sum to 1, so the mix never
clips.

Source:  ITU-R BS.775-4, table 2 (levels), divided by their sum; Microsoft, mmreg.h (speakers of WAV);
         Xiph, Vorbis I specification, 4.3.9, and RFC 9639, 9.1.3 (speakers of Ogg and FLAC)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

FRONT, CENTER, SURROUND, NONE = 0.5**0.5, 1.0, 0.5, 0.0  # -3 dB, 0 dB, -6 dB
LEVELS = {
    "FL": FRONT, "FR": FRONT, "FC": CENTER, "LFE": NONE, "BL": SURROUND, "BR": SURROUND, "FLC": FRONT, "FRC": FRONT,
    "BC": SURROUND, "SL": SURROUND, "SR": SURROUND,
}  # fmt: skip
MASK_BITS = tuple(
    LEVELS
)  # the speakers of the bits of WAV's channel mask, the lowest first; higher ones are above heads

# Speakers by number of channels, for files without a channel mask.
WAV_SPEAKERS = {
    3: "FL FR LFE", 4: "FL FR FC BC", 5: "FL FR FC BL BR", 6: "FL FR FC LFE BL BR", 7: "FL FR FC LFE BC SL SR",
    8: "FL FR FC LFE BL BR SL SR",
}  # fmt: skip
FLAC_SPEAKERS = WAV_SPEAKERS | {3: "FL FR FC", 4: "FL FR BL BR"}
OGG_SPEAKERS = {
    3: "FL FC FR", 4: "FL FR BL BR", 5: "FL FC FR BL BR", 6: "FL FC FR BL BR LFE", 7: "FL FC FR SL SR BC LFE",
    8: "FL FC FR SL SR BL BR LFE",
}  # fmt: skip


def speakers_of_mask(mask: int, channels: int) -> tuple[str, ...]:
    """Return the speakers of a WAV file's channels. A mask with another number of channels is ignored."""
    if mask.bit_count() != channels:
        return speakers_by_count(channels, WAV_SPEAKERS)
    return tuple(
        MASK_BITS[bit] if bit < len(MASK_BITS) else "above" for bit in range(mask.bit_length()) if mask >> bit & 1
    )


def speakers_by_count(channels: int, speakers: dict[int, str]) -> tuple[str, ...]:
    """Return the usual speakers for a number of channels; empty if there is no usual order."""
    return tuple(speakers.get(channels, "").split())


def mono_weights(channels: int, speakers: Sequence[str] = ()) -> Floats:
    """Return the weight of each channel; equal weights if the speakers are unknown or all have weight 0.

    Shapes:  (channels,)
    """
    levels = np.array([LEVELS.get(name, NONE) for name in speakers])
    if len(levels) != channels or not levels.any():
        levels = np.ones(channels)
    return (levels / levels.sum()).astype(np.float32)
