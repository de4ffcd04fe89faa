# Draw functions with matplotlib, which loads when it is imported.
import matplotlib.pyplot as plt

import tallow as tl
from tallow.nn import functional as F

x = tl.linspace(-3, 3, 200)
for function in (F.relu, F.gelu, F.silu, tl.tanh):
    plt.plot(x, function(x), label=function.__name__)
plt.legend()
plt.title("Activations")
plt.show()
