"""Build models as in candle: layers get their variables by name from a `VarBuilder`.

    vb = nn.VarBuilder.from_varmap(varmap)                    new, trainable variables, stored in a VarMap
    vb = nn.VarBuilder.from_safetensors("model.safetensors")  or the tensors of a file
    layer = nn.linear(784, 10, vb.pp("head"))                 reads "head.weight" and "head.bias"

The lower-case functions return the same modules as the classes of `tallow.nn`. Names and initial values are candle's.

Source:  https://docs.rs/candle-nn
"""
