"""layer_norm, rms_norm and the norms over channels."""

from __future__ import annotations

from cases import case, normal

case("rms_norm", lambda m, x, w: m.nn.functional.rms_norm(x, (4,), w, 1e-5), normal(3, 4), normal(4))
case("rms_norm", lambda m, x, w: m.nn.functional.rms_norm(x, (3, 4), w), normal(2, 3, 4), normal(3, 4))
case("rms_norm", lambda m, x: m.rms_norm(x, [4], eps=0.1), normal(2, 3, 4))
case("rms_norm", lambda m, x, w: m.rms_norm(x, [4], w), normal(4), normal(4))
case("rms_norm", lambda m, x: m.nn.functional.rms_norm(x, (4,)), normal(0, 4))
case("layer_norm", lambda m, x, w, b: m.nn.functional.layer_norm(x, (4,), w, b), normal(3, 4), normal(4), normal(4))
case(
    "layer_norm",
    lambda m, x, w, b: m.layer_norm(x, (3, 4), w, b, eps=1e-3),
    normal(2, 3, 4),
    normal(3, 4),
    normal(3, 4),
)
case("layer_norm", lambda m, x, w: m.nn.functional.layer_norm(x, (4,), w), normal(2, 3, 4), normal(4))
case("layer_norm", lambda m, x, b: m.nn.functional.layer_norm(x, (4,), None, b), normal(2, 3, 4), normal(4))
case("layer_norm", lambda m, x: m.nn.functional.layer_norm(x, [4]), normal(0, 4))
