"""Small files written by PyTorch, in both of its formats."""

from __future__ import annotations

import base64
import zlib

# Written by PyTorch 2.13:
#   x = torch.arange(6, dtype=torch.float32).reshape(2, 3) / 2
#   torch.save({"x": x, "column": x[:, 1], "p": torch.nn.Parameter(torch.tensor([1.5])),
#               "bf": torch.tensor([1.0, -2.0], dtype=torch.bfloat16), "epoch": 3}, file)
ZIP = zlib.decompress(
    base64.b64decode(
        "eNqllctu00AUhid2bjU0vVDoBSjlnqKSJmnSJOWSykJmYQnSlEsUIUWu4zYWbpzjTEpBQqqEUuhLsGDDA7BA7PoCLEAsWLBjAyuWsGTGTl"
        "PbVZpCR5qMYs33n99nzhnnRNaLUDCI9ox+NIgkQ66oa8p0WcJSpPZYE/gQKjrGBvMcULjgIcA6eGSsEyJSamBVq3MlQ1lqqFq5hJVqXTdK"
        "a3EOmHC4ECCb62SntKIAayGcoOkSXrQecuA1BaPgK7BklWsN8It+DIEFEYmMyG5CUGRFzyb0bMmyrmmKjFW9WufuGmXFUMq3VBlzwE3m4Q"
        "iGo3noLfipiq41VqsQqhALFbbirfgqpmjfgugRmSb0i2wTBrYqlBvEcCwPQ6aLGhzv8Fo1yZBWFawYHJzYUTWRGAwTbQ+GEWrY04RR+jNm"
        "aZ/EcCoPp1+Zf8Zfwpk8TBQYQi0tw1lLppUT3kxKbLadlnOmehzOE3UGwwUzHU24SNUvWeqXMYTzMFnwkY1KTZcrcEVkG5GcGAim3yy/e0"
        "sE6Mx1PPZhNNQ+9siybqxKuLSmGHWSYIHvd51+sRijyu9/fXtBndHZWXkMpXaVW+dfkjR1pbqqVLHAz+wRP8CYTVAD2Sfwk6aQ2dfAAMq2"
        "DSw9xYpOy0Xgr/1P3J2hqRhrCvXQvPF9lNaZf18PIXTT0VXTUYGfO4SBlmwWoQ0yt8lE8whNzFNHix8efhwhD0a6OJpyOooJfBgdPP52ls"
        "bSL359RAIgb5dY885YcYG/fpj0F8lbb9P4cz131rvH77NVQLuoD3X+MxyN/un1yv3u9TeO4rsNYL5+XTFU0gHPJHp/ldSywEf+0Uw0ncgk"
        "0ul0IpWZTUYT6dRMMhpLpqMziQRZ45lkNJnJpFIp6rIq906EiY+w6dJDzbZ92i+H/j3O3d8BN22/AIYd5G8P6nSduEXsTTzmEFlg0D43h1"
        "vH3ogDDp3PNp32BeDG7V0TcuAPWOTqXTdr7wIn+8PNxtysvYKd7D2vi427WXv99TnYLza2Q97tZTHugPM+1KVgc6LfP7VT3uzVNtnjWm8z"
        "1vrHZ62EC5hn3vJgfTl8fovpMfdbe/8CEzLkWw=="
    )
)
# The same, written with _use_new_zipfile_serialization=False.
LEGACY = zlib.decompress(
    base64.b64decode(
        "eNp1kdtu00AQhn1KAoaWcqYcQ8vBgBQRJzHpVSqEerOCUnOzN8hynaU2cr2e9boCpEq5SWl5Bh6Ax+jr8AhIXDBr00pIZi5G3vHs/80/Oz"
        "O+2env7xu/uh9/vF3uzYzXP03M+6A5dEnTtFxwySOeBntMFAnPQMcGuoB/0kTKlAUsmyZhBsYhtbEoP+csKJIvrABzHyyHtrBYxFxIaBGD"
        "mnhKMgltYlFLafBsBzrEKssTpo7VT6BHkoso7gWlTNLCDgTbLpN0GkiWFVwEe64NhuPQjhLHznCHgVlfsTdSHsp3ddEGiy5iz9qw3x89Hw"
        "w9bzRwx9Cq5ojyEudov5HQ2SIaMYh5AGeISfQDOHsUoeWURRIdF/ammDLBpq+SSNpgP/HhnITzPizQtpLhabmbwWKMA8Vm3Ai8ENegpS2i"
        "E2MOF4k5h0tHsdK6LOGKD1cr4zlc+4/xPBThLpNM2HC9mTQajF+4cANJOpKWlSV9DjdVulWTbku448Pdw+pw7yt0fbhPDdTY/gArtejfHb"
        "6sltj3Tte4esoarg3Hrue5yHqALANZD6v1zeGRYj2uWY4EzE+r52c5j2J4Rkz1yO/VIzeI6U1ujKZlmqynhlYxm2jHunYSx5O29k9Mqg6s"
        "4/e6pnXX/wAmt79z"
    )
)
