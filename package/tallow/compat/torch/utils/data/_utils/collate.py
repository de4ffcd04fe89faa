"""torch.utils.data._utils.collate: batches of samples."""

import re

from tallow.data.collate import collate as collate
from tallow.data.collate import collate_float_fn as collate_float_fn
from tallow.data.collate import collate_int_fn as collate_int_fn
from tallow.data.collate import collate_numpy_array_fn as collate_numpy_array_fn
from tallow.data.collate import collate_numpy_scalar_fn as collate_numpy_scalar_fn
from tallow.data.collate import collate_str_fn as collate_str_fn
from tallow.data.collate import collate_tensor_fn as collate_tensor_fn
from tallow.data.collate import default_collate as default_collate
from tallow.data.collate import default_collate_fn_map as default_collate_fn_map
from tallow.data.collate import default_convert as default_convert

np_str_obj_array_pattern = re.compile(r"[SaUO]")  # codes of NumPy's dtypes of texts and objects
default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)
