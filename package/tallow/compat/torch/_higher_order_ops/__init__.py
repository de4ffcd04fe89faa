"""torch._higher_order_ops: functions of functions, for graphs."""
