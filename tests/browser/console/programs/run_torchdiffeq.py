"""`odeint`, `odeint_adjoint`."""

import torch
from prelude import filled, image, show, trained
from torchdiffeq import odeint, odeint_adjoint


class Field(torch.nn.Module):
    """The right side of an equation."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, t, y):
        return torch.tanh(self.layer(y)) * t


field, times = filled(Field()), torch.linspace(0.0, 1.0, 3)
show(odeint(field, image(2, 4), times), *trained(field, odeint_adjoint(field, image(2, 4), times)))
