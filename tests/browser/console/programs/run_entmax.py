"""`sparsemax`, `entmax15`."""

import entmax
from prelude import image, show

x = image(3, 9)
show(entmax.sparsemax(x, dim=-1), entmax.entmax15(x, dim=-1))
