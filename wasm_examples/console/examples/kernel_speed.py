# Compare the WebAssembly kernels with NumPy, on the same matrix product.
import time

import tallow as tl


def seconds(function, repeats=5):
    function()  # the first call selects the kernel
    started = time.perf_counter()
    for _ in range(repeats):
        function()
    return (time.perf_counter() - started) / repeats


a, b = tl.randn(512, 512), tl.randn(512, 512)
fast = seconds(lambda: a @ b)
with tl.kernels.off():
    slow = seconds(lambda: a @ b)
print(tl.kernels.info())
print(f"kernels {fast * 1000:.1f} ms, NumPy {slow * 1000:.1f} ms: {slow / fast:.0f} times as fast")
