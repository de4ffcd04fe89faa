# A network learns the sine, with an ordinary training loop.
import tallow as tl
from tallow import nn

x = tl.linspace(-3, 3, 200).unsqueeze(1)
y = tl.sin(x)
model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = tl.optim.Adam(model.parameters(), lr=0.01)
for step in range(1, 1001):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step}: loss {loss.item():.6f}")
model.eval()
