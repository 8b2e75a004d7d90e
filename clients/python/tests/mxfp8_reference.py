"""MXFP8 and error bounds in float64, written from the format's definition.

Blocks of 32 along a row share 2^e, e the least exponent for which the largest element is
at most 448 * 2^e; elements are rounded to E4M3, ties to even.
"""

import torch

BLOCK = 32
E4M3_MAX = 448.0
E4M3_MIN_EXPONENT = -6  # of normal numbers
MANTISSA_BITS = 3

# 2^-24 of F32, 2^-8 of BF16, 2^-11 of F16: half a unit in the last place, relative.
ROUNDING = {torch.float32: 2.0**-24, torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}


def row_quantized(matrix):
    """What a row plane of `matrix` [rows, columns] decodes to, in float64."""
    rows, columns = matrix.shape
    padded = torch.nn.functional.pad(matrix.double(), (0, -columns % BLOCK))
    blocks = padded.reshape(rows, -1, BLOCK)
    fraction, exponent = torch.frexp(blocks.abs().amax(2, keepdim=True) / E4M3_MAX)
    # frexp: fraction in [1/2, 1), so 1/2 is a power of two itself; and 0 for 0.
    exponent = torch.where(fraction == 0.5, exponent - 1, exponent)
    scale = torch.pow(2.0, exponent.double())
    return (to_e4m3(blocks / scale) * scale).reshape(rows, -1)[:, :columns]


def column_quantized(matrix):
    """The same for a column plane: blocks along the rows."""
    return row_quantized(matrix.t().contiguous()).t()


def to_e4m3(values):
    """Rounds float64 values of at most 448 to E4M3."""
    exponent = torch.frexp(values)[1] - 1
    step = torch.pow(2.0, (exponent.clamp(min=E4M3_MIN_EXPONENT) - MANTISSA_BITS).double())
    return torch.round(values / step) * step  # torch rounds ties to even


def decode_e4m3(codes):
    """Values of E4M3 codes (uint8), in float64."""
    codes = codes.to(torch.int64)
    exponent, mantissa = (codes >> MANTISSA_BITS) & 15, codes & 7
    normal = (8 + mantissa).double() * torch.pow(2.0, (exponent - 10).double())
    value = torch.where(exponent == 0, mantissa.double() * 2.0**-9, normal)
    return torch.where(codes >= 128, -value, value)


def product_and_bound(a, b, dtype, bias=None):
    """(a @ b + bias, how far a result of `dtype` may be from it), in float64.

    a [m, k], b [k, n]. Each of the k additions errs by at most 2^-23 of the sum of |a * b|;
    adding the bias and storing round once each.
    """
    exact = a @ b
    sums = a.shape[1] * 2.0**-23 * (a.abs() @ b.abs())
    if bias is not None:
        sums = sums + 2.0**-24 * (exact.abs() + sums + bias.abs())
        exact = exact + bias
    # F16 subnormals are rounded to a multiple of 2^-24.
    stored = ROUNDING[dtype] * (exact.abs() + sums)
    return exact, sums + stored + (2.0**-25 if dtype == torch.float16 else 2.0**-126)
