# Tensors and their gradients, with PyTorch's names.
import tallow as tl

x = tl.linspace(-2, 2, 5, requires_grad=True)
y = (x**3 - 2 * x).sum()
y.backward()
print("x    ", x.data)
print("dy/dx", x.grad)  # 3 x² - 2
tl.autograd.grad((x**3).sum(), x)
