"""Several channels mixed to one, each weighed by where its speaker stands.

A film's voices are on the centre channel of 5.1; a plain mean would give them a sixth, and the subwoofer as much. The
weights are ffmpeg's, by which openai-whisper reads every file. They add up to 1, so the mix never clips.

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

# What stands where in files that say no more than how many channels there are.
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
    """The speakers of a WAV file's channels. A mask of another number of channels says nothing."""
    if mask.bit_count() != channels:
        return speakers_by_count(channels, WAV_SPEAKERS)
    return tuple(
        MASK_BITS[bit] if bit < len(MASK_BITS) else "above" for bit in range(mask.bit_length()) if mask >> bit & 1
    )


def speakers_by_count(channels: int, speakers: dict[int, str]) -> tuple[str, ...]:
    """The usual speakers of so many channels; none where there is no usual order, nor need for one."""
    return tuple(speakers.get(channels, "").split())


def mono_weights(channels: int, speakers: Sequence[str] = ()) -> Floats:
    """What each channel is multiplied by; the same for all where the speakers are not known or none of them is heard.

    Shapes:  (channels,)
    """
    levels = np.array([LEVELS.get(name, NONE) for name in speakers])
    if len(levels) != channels or not levels.any():
        levels = np.ones(channels)
    return (levels / levels.sum()).astype(np.float32)
