"""torch.onnx.utils: functions around an export."""

from tallow.compat.torch.onnx import export, register_custom_op_symbolic, select_model_mode_for_export

__all__ = ["export", "register_custom_op_symbolic", "select_model_mode_for_export"]
