"""The kinds of things in scenes, each with the emoji that shows it; and other emoji, which are nothing to find."""

from __future__ import annotations

from pathlib import Path

FONT = Path("/usr/share/fonts/truetype/noto/NotoColorEmoji.ttf")  # of Debian's fonts-noto-color-emoji

KINDS = {
    "dog": "🐶",
    "cat": "🐱",
    "panda": "🐼",
    "fox": "🦊",
    "frog": "🐸",
    "monkey": "🐵",
    "pig": "🐷",
    "chicken": "🐔",
    "penguin": "🐧",
    "fish": "🐟",
    "octopus": "🐙",
    "butterfly": "🦋",
    "turtle": "🐢",
    "elephant": "🐘",
    "apple": "🍎",
    "banana": "🍌",
    "grapes": "🍇",
    "strawberry": "🍓",
    "watermelon": "🍉",
    "pineapple": "🍍",
    "pizza": "🍕",
    "hamburger": "🍔",
    "doughnut": "🍩",
    "ice cream": "🍦",
    "car": "🚗",
    "bus": "🚌",
    "bicycle": "🚲",
    "train": "🚂",
    "airplane": "✈",
    "rocket": "🚀",
    "sailboat": "⛵",
    "helicopter": "🚁",
    "football": "⚽",
    "balloon": "🎈",
    "clock": "⏰",
    "guitar": "🎸",
    "present": "🎁",
    "key": "🔑",
    "cactus": "🌵",
    "sunflower": "🌻",
}

# Different from every kind above at a glance.
OTHERS = "🔨📎🍞🧀🥕🥦🍄🌙💧🔥📷💡📚🧦👕👟🎩👓💍🔔🎹🥁🏠🏰🌲🍁❄🧲🧹🪑🛏🚪🪜🧱⚓🎯🎲🧩🕯🧸🥄🍴🥛🧊"
