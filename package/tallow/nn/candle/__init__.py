"""candle's way of making models: variables under names come from a `VarBuilder`, whatever is behind it.

    vb = nn.VarBuilder.from_varmap(varmap)                    new variables, kept in a VarMap, to be trained
    vb = nn.VarBuilder.from_safetensors("model.safetensors")  or those of a file
    layer = nn.linear(784, 10, vb.pp("head"))                 takes "head.weight" and "head.bias"

The lower-case functions return the same modules as the classes of `tallow.nn`. Names and initial values are candle's.

Source:  https://docs.rs/candle-nn
"""
