"""Names of `torch.nn.functional` that tallow itself does not have."""

from tallow.compat.absent import absent
from tallow.compat.torch.overrides import has_torch_function as has_torch_function
from tallow.compat.torch.overrides import has_torch_function_unary as has_torch_function_unary
from tallow.compat.torch.overrides import has_torch_function_variadic as has_torch_function_variadic

_HINT = "multiply in bfloat16, or with quantized weights"
ScalingType = absent("torch.nn.functional.ScalingType", _HINT)
SwizzleType = absent("torch.nn.functional.SwizzleType", _HINT)
scaled_mm = absent("torch.nn.functional.scaled_mm", _HINT)
scaled_grouped_mm = absent("torch.nn.functional.scaled_grouped_mm", _HINT)
