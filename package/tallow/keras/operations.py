"""Operations: Keras' file format of `keras.ops` functions, each a class with a module and arguments.

    x + y            {"module": "keras.src.ops.numpy", "class_name": "Add", "config": {"name": "add"}}, called with x, y
    ops.mean(x, 1)   {..., "class_name": "Mean", "config": {"name": "mean", "axis": 1, "keepdims": False}}, with x

Source:  keras/src/ops of Keras 3.15
"""

from __future__ import annotations

import re
from typing import NamedTuple

# The functions by module. "=" is followed by the class name if it is not the CamelCase of the function's; parentheses
# contain the arguments of the class, all others are arguments of the call.
TABLE = {
    "core": """
        cast(dtype) scatter(shape) scatter_update(reduction) slice(shape) slice_update stop_gradient
        unstack(num,axis)
    """,
    "linalg": """
        cholesky(upper) cholesky_inverse(upper) det eig eigh inv lstsq(rcond) lu_factor matrix_rank(tol)
        norm(ord,axis,keepdims) pinv(rcond) qr(mode) solve solve_triangular(lower)
        svd=SVD(full_matrices,compute_uv)
    """,
    "math": """
        cdist=CDist erf erfc erfinv extract_sequences(sequence_length,sequence_stride) fft=FFT fft2=FFT2
        ifft2=IFFT2 in_top_k(k) irfft=IRFFT(fft_length)
        istft=ISTFT(sequence_length,sequence_stride,fft_length,length,window,center) logdet
        logsumexp(axis,keepdims) rfft=RFFT(fft_length) rsqrt segment_max(num_segments,sorted)
        segment_min(num_segments,sorted) segment_prod(num_segments,sorted) segment_sum(num_segments,sorted)
        stft=STFT(sequence_length,sequence_stride,fft_length,window,center) top_k(k,sorted) view_as_complex
        view_as_real
    """,
    "nn": """
        adaptive_average_pool(output_size,data_format) adaptive_max_pool(output_size,data_format)
        average_pool(pool_size,strides,padding,data_format) batch_normalization=BatchNorm(axis,epsilon)
        binary_crossentropy(from_logits) categorical_crossentropy(from_logits,axis) celu(alpha)
        conv(strides,padding,data_format,dilation_rate)
        conv_transpose(strides,padding,output_padding,data_format,dilation_rate)
        ctc_decode=CTCDecode(strategy,beam_width,top_paths,merge_repeated,mask_index)
        ctc_loss=CTCLoss(mask_index) depth_to_space(block_size,data_format)
        depthwise_conv(strides,padding,data_format,dilation_rate)
        dot_product_attention(is_causal,flash_attention,attn_logits_soft_cap) elu(alpha)
        fold(output_size,kernel_size,dilation,padding,stride) gelu(approximate) glu(axis)
        hard_shrink(threshold) hard_sigmoid hard_silu hard_swish=HardSilu hard_tanh
        layer_normalization=LayerNorm(axis,epsilon,rms_scaling) leaky_relu(negative_slope) log_sigmoid
        log_softmax(axis) max_pool(pool_size,strides,padding,data_format) moments(axes,keepdims,synchronized)
        multi_hot(num_classes,axis,dtype,sparse) normalize(axis,order,epsilon)
        one_hot(num_classes,axis,dtype,sparse) polar psnr=PSNR(max_val) relu relu6
        rms_normalization=RMSNorm(axis,epsilon) selu separable_conv(strides,padding,data_format,dilation_rate)
        sigmoid silu soft_shrink(threshold) softmax(axis) softplus softsign
        space_to_depth(block_size,data_format) sparse_categorical_crossentropy(from_logits,axis) sparse_plus
        sparse_sigmoid sparsemax(axis) squareplus(b) swish=Silu tanh_shrink threshold(threshold,default_value)
        unfold(kernel_size,dilation,padding,stride)
    """,
    "numpy": """
        abs=Absolute absolute add all(axis,keepdims) allclose=AllClose(rtol,atol,equal_nan)
        amax(axis,keepdims) amin(axis,keepdims) angle any(axis,keepdims) append(axis) arccos arccosh arcsin
        arcsinh arctan arctan2 arctanh argmax(axis,keepdims) argmin(axis,keepdims) argpartition(kth,axis)
        argsort(axis) array(dtype) array_split(indices_or_sections,axis) average(axis)
        bincount(weights,minlength,sparse) bitwise_and bitwise_invert bitwise_left_shift bitwise_not
        bitwise_or bitwise_right_shift bitwise_xor broadcast_to(shape) cbrt ceil clip(x_min,x_max)
        concatenate(axis) conjugate copy corrcoef correlate(mode) cos cosh count_nonzero(axis)
        cross(axisa,axisb,axisc,axis) cumprod(axis,dtype) cumsum(axis,dtype) deg2rad diag(k) diagflat(k)
        diagonal(offset,axis1,axis2) digitize divide divide_no_nan dot dsplit(indices_or_sections) dstack
        einsum(subscripts) empty_like(dtype) equal exp exp2 expand_dims(axis) expm1 fabs flip(axis) fliplr
        flipud floor floor_divide fmax fmin fmod full(shape,dtype) full_like(dtype) gcd get_item greater
        greater_equal heaviside histogram(bins,range) hsplit(indices_or_sections) hstack hypot i0 imag inner
        isclose(equal_nan) isfinite isin=IsIn(assume_unique,invert) isinf isnan isneginf isposinf isreal kron
        lcm ldexp left_shift less less_equal log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not
        logical_or logical_xor matmul max(axis,keepdims,initial) maximum mean(axis,keepdims)
        median(axis,keepdims) meshgrid(indexing) min(axis,keepdims,initial) minimum mod
        moveaxis(source,destination) multiply nan_to_num(nan,posinf,neginf) nanargmax(axis,keepdims)
        nanargmin(axis,keepdims) nancumprod(axis,dtype) nancumsum(axis,dtype) nanmax(axis,keepdims)
        nanmean(axis,keepdims) nanmedian(axis,keepdims) nanmin(axis,keepdims)
        nanpercentile(axis,method,keepdims) nanprod(axis,keepdims) nanquantile(axis,method,keepdims)
        nanstd(axis,keepdims) nansum(axis,keepdims) nanvar(axis,keepdims) ndim negative nextafter nonzero
        not_equal ones_like(dtype) outer pad(pad_width,mode) percentile(axis,method,keepdims) power
        prod(axis,keepdims,dtype) ptp(axis,keepdims) quantile(axis,method,keepdims) rad2deg ravel real
        reciprocal repeat(repeats,axis) reshape(newshape) right_shift roll(shift,axis) rot90(k,axes)
        round(decimals) searchsorted=SearchSorted(side) select sign signbit sin sinc sinh size slogdet
        sort(axis) split(indices_or_sections,axis) sqrt square squeeze(axis) stack(axis) std(axis,keepdims)
        subtract sum(axis,keepdims) swapaxes(axis1,axis2) take(axis) take_along_axis(axis) tan tanh
        tensordot(axes) tile(repeats) trace(offset,axis1,axis2) transpose(axes) trapezoid(x,dx,axis) tril(k)
        triu(k) true_divide trunc
        unique(sorted,return_index,return_inverse,return_counts,axis,size,fill_value) unravel_index(shape)
        vander(N,increasing) var(axis,keepdims) vdot view(dtype) vsplit(indices_or_sections) vstack where
        zeros_like(dtype)
    """,
}


class Operation(NamedTuple):
    """Keras' file format of a function.

    Attributes:
        options: the arguments of the class.
    """

    name: str
    module: str
    class_name: str
    options: tuple[str, ...]


def _parse_table() -> dict[str, Operation]:
    operations = {}
    for module, text in TABLE.items():
        for name, kind, options in re.findall(r"(\w+)(?:=(\w+))?(?:\(([\w,]+)\))?", text):
            kind = kind or "".join(part.capitalize() for part in name.split("_"))
            operations[name] = Operation(
                name, f"{PACKAGE}.{module}", kind, tuple(options.split(",")) if options else ()
            )
    return operations


PACKAGE = "keras.src.ops"
OPERATIONS = _parse_table()
# By class; if two functions share a class, such as abs and absolute, the one with the class's name.
CLASSES = {op.class_name: op for op in OPERATIONS.values()}
CLASSES |= {op.class_name: op for op in OPERATIONS.values() if op.class_name.lower() == op.name.replace("_", "")}
