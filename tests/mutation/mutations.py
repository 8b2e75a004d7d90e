"""Plausible mistakes in the normative numeric code, each of which a test must notice.

What a mutation changes is exact text that occurs once in its file; mutations_test.py
holds the list to that. run_mutations.py applies them.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Mutation:
    name: str  # what would be wrong, as a phrase
    path: str  # from the root
    before: str
    after: str
    tests: tuple  # labels of tests that run against it


def _numeric(test):
    return (f"//core/numeric:{test}", "//tests/golden:golden_test")


# What every quantizer runs through.
_CONFORMANCE = "//core/quant:format_conformance_test"
_GOLDEN = "//tests/golden:plane_golden_test"
_PROPERTY = "//tests/property:quantize_property_test"
_PLANES = (_CONFORMANCE, _GOLDEN, _PROPERTY)

MUTATIONS = (
    # ---- Number formats
    Mutation(
        name="ties round away from zero",
        path="core/numeric/small_float.h",
        before="const uint32_t last_kept_bit = (bits >> kDroppedBits) & 1;",
        after="const uint32_t last_kept_bit = 1;",
        tests=_numeric("float8_e4m3_test"),
    ),
    Mutation(
        name="subnormal codes are flushed to zero",
        path="core/numeric/small_float.h",
        before="  if (bits < kSmallestNormal) {\n",
        after="  if (bits < kSmallestNormal) {\n    return 0;\n",
        tests=_numeric("float8_e5m2_test"),
    ),
    Mutation(
        name="subnormal codes are truncated",
        path="core/numeric/small_float.h",
        before="""\
    return std::bit_cast<uint32_t>(std::bit_cast<float>(bits) + kAnchor) -
           std::bit_cast<uint32_t>(kAnchor);
""",
        after=(
            "    return static_cast<uint32_t>("
            "std::bit_cast<float>(bits) / (kAnchor * 0x1p-23f));\n"
        ),
        tests=_numeric("float8_e4m3_test"),
    ),
    Mutation(
        name="NaN becomes the largest E4M3 number",
        path="core/numeric/float8_e4m3.h",
        before="if (IsNan(value)) return {0x7F};",
        after="if (IsNan(value)) return {kMaxCode};",
        tests=_numeric("float8_e4m3_test"),
    ),
    Mutation(
        name="E5M2 overflows to infinity instead of saturating",
        path="core/numeric/float8_e5m2.h",
        before="RoundToSmallFloat<kMantissaBits, kBias>(value), kMaxCode);",
        after="RoundToSmallFloat<kMantissaBits, kBias>(value), kInfinity);",
        tests=_numeric("float8_e5m2_test"),
    ),
    Mutation(
        name="NaN becomes 0 in E2M1",
        path="core/numeric/float4_e2m1.h",
        before="if (IsNan(value)) return {kMaxCode};",
        after="if (IsNan(value)) return {0};",
        tests=("//core/numeric:float4_e2m1_test", _CONFORMANCE),
    ),
    Mutation(
        name="the even element of a pair lies in the high half",
        path="core/numeric/float4_e2m1.h",
        before="byte = index % 2 == 0 ?",
        after="byte = index % 2 != 0 ?",
        tests=("//core/numeric:float4_e2m1_test", _CONFORMANCE, _GOLDEN),
    ),
    Mutation(
        name="E8M0 rounds down",
        path="core/numeric/scale_e8m0.h",
        before="mantissa == 0 ? exponent : exponent + 1",
        after="exponent",
        tests=_numeric("scale_e8m0_test"),
    ),
    Mutation(
        name="an infinite E8M0 scale becomes NaN",
        path="core/numeric/scale_e8m0.h",
        before="if (exponent >= kMax) return {kMax};",
        after="if (exponent > kMax) return {kNan};",
        tests=_numeric("scale_e8m0_test"),
    ),
    Mutation(
        name="E8M0 code 0 decodes to zero",
        path="core/numeric/scale_e8m0.h",
        before="if (exponent == 0) return std::bit_cast<float>(kMantissaOfTwoToMinus127);",
        after="if (exponent == 0) return 0.0f;",
        tests=_numeric("scale_e8m0_test"),
    ),
    Mutation(
        name="one random word too many rounds up",
        path="core/numeric/stochastic_rounding.h",
        before="if (random < static_cast<uint64_t>(distance * 0x1p32f)) ++code;",
        after="if (random <= static_cast<uint64_t>(distance * 0x1p32f)) ++code;",
        tests=("//core/numeric:stochastic_rounding_test",),
    ),
    Mutation(
        name="both planes are rounded by the same random words",
        path="core/numeric/stochastic_rounding.h",
        before="return Philox(key_, {Low(group), High(group), plane_, 0});",
        after="return Philox(key_, {Low(group), High(group), 0, 0});",
        tests=("//core/numeric:stochastic_rounding_test", _CONFORMANCE),
    ),
    Mutation(
        name="random words are made in seven rounds",
        path="core/numeric/philox.h",
        before="kRounds = 10;",
        after="kRounds = 7;",
        tests=("//core/numeric:philox_test", _CONFORMANCE),
    ),
    # ---- Scales
    Mutation(
        name="MXFP8 multiplies by the next number above the reciprocal of its largest code",
        path="core/quant/mxfp8_block.h",
        before="kReciprocalOfMax = 1.0f / Element::kMax;",
        after="kReciprocalOfMax = 1.0f / Element::kMax * 0x1.000002p0f;",
        tests=("//core/quant:mxfp8_block_test", _CONFORMANCE),
    ),
    Mutation(
        name="NVFP4 divides by 6 instead of multiplying by 1/6",
        path="core/quant/nvfp4_block.h",
        before="EncodeScale(tensor_amax) * (1.0f / Float4E2M1::kMax)",
        after="EncodeScale(tensor_amax) / Float4E2M1::kMax",
        tests=(_CONFORMANCE, _GOLDEN),
    ),
    Mutation(
        name="NVFP4 has no multiplier for a block scale of 0",
        path="core/quant/nvfp4_block.h",
        before="return std::min(1.0f / (scale.ToFloat() * decode_), kLargest);",
        after="return 1.0f / (scale.ToFloat() * decode_);",
        tests=_PLANES,
    ),
    Mutation(
        name="NVFP4 takes an infinite magnitude for a scale of 0",
        path="core/quant/nvfp4_block.h",
        before="return encode == 0.0f ? 1.0f : encode;",
        after="return encode;",
        tests=(_CONFORMANCE, _GOLDEN),
    ),
    Mutation(
        name="NVFP4 is read with the factors multiplied in another order",
        path="core/quant/nvfp4_block.h",
        before="scale.ToFloat() * tensor_amax * (1.0f / (Float8E4M3::kMax * Float4E2M1::kMax));",
        after="scale.ToFloat() * (tensor_amax * (1.0f / (Float8E4M3::kMax * Float4E2M1::kMax)));",
        tests=(_CONFORMANCE, _GOLDEN),
    ),
    Mutation(
        name="epsilon does not replace a magnitude of 0",
        path="core/quant/fp8_scale.h",
        before="if (amax < rule.epsilon) amax = rule.epsilon;",
        after="if (amax != 0.0f && amax < rule.epsilon) amax = rule.epsilon;",
        tests=("//core/quant:fp8_scale_test", _CONFORMANCE),
    ),
    Mutation(
        name="a block of zeros has a scale beyond every number",
        path="core/quant/fp8_scale.h",
        before="if (amax == 0.0f || !std::isfinite(amax)) return 1.0f;",
        after="if (!std::isfinite(amax)) return 1.0f;",
        tests=("//core/quant:fp8_scale_test", _CONFORMANCE, _GOLDEN),
    ),
    Mutation(
        name="a scale beyond F32 is cut to F32's largest number in a BF16 block",
        path="core/quant/fp8_scale.h",
        before="std::bit_cast<float>(0x7F7F0000u)",
        after="std::numeric_limits<float>::max()",
        tests=("//core/quant:fp8_scale_test", _CONFORMANCE, _GOLDEN),
    ),
    Mutation(
        name="a scale that is to be a power of two is rounded to the nearest",
        path="core/quant/fp8_scale.h",
        before="std::bit_cast<uint32_t>(scale) & kSignAndExponent",
        after="(std::bit_cast<uint32_t>(scale) + 0x400000) & kSignAndExponent",
        tests=("//core/quant:fp8_scale_test", _CONFORMANCE, _GOLDEN),
    ),
    # ---- Transform
    Mutation(
        name="one sign of the Hadamard transform is wrong",
        path="core/quant/hadamard.h",
        before="    1, 1, 1, -1, 1, -1, -1,",
        after="    1, 1, 1, 1, 1, -1, -1,",
        tests=("//core/quant:hadamard_test", _CONFORMANCE, _GOLDEN),
    ),
    Mutation(
        name="the Hadamard transform is not normalised",
        path="core/quant/hadamard.h",
        before="values[i] *= 0.25f * static_cast<float>(kHadamardSigns[i]);",
        after="values[i] *= static_cast<float>(kHadamardSigns[i]);",
        tests=("//core/quant:hadamard_test", _CONFORMANCE, _GOLDEN),
    ),
    Mutation(
        name="transformed elements are not rounded to BF16",
        path="core/quant/hadamard.h",
        before="for (float& value : values) value = BFloat16::FromFloat(value).ToFloat();",
        after="",
        tests=("//core/quant:hadamard_test", _CONFORMANCE, _GOLDEN),
    ),
    # ---- Delayed scaling
    Mutation(
        name="delayed scaling moves its history before it looks at it",
        path="core/quant/delayed_scaling.cc",
        before="""\
  const float amax =
      rule.most_recent ? history[0] : *std::max_element(history.begin(), history.end());
  std::rotate(history.begin(), history.begin() + 1, history.end());
  history[0] = 0.0f;
""",
        after="""\
  std::rotate(history.begin(), history.begin() + 1, history.end());
  history[0] = 0.0f;
  const float amax =
      rule.most_recent ? history[0] : *std::max_element(history.begin(), history.end());
""",
        tests=("//core/quant:delayed_scaling_test", _CONFORMANCE),
    ),
    Mutation(
        name="delayed scaling moves its history the wrong way",
        path="core/quant/delayed_scaling.cc",
        before="std::rotate(history.begin(), history.begin() + 1, history.end());",
        after="std::rotate(history.begin(), history.end() - 1, history.end());",
        tests=("//core/quant:delayed_scaling_test", _CONFORMANCE),
    ),
    Mutation(
        name="delayed scaling forgets its history in a step without a cast",
        path="core/quant/delayed_scaling.cc",
        before="  if (history[0] == 0.0f) return;\n",
        after="",
        tests=("//core/quant:delayed_scaling_test", _CONFORMANCE),
    ),
    Mutation(
        name="delayed scaling takes a scale whose inverse is infinite",
        path="core/quant/delayed_scaling.cc",
        before="if (std::isfinite(1.0f / next)) scale = next;",
        after="scale = next;",
        tests=("//core/quant:delayed_scaling_test",),
    ),
    # ---- Planes
    Mutation(
        name="an element is divided by the scale that is stored",
        path="core/quant/scalar_quantizer.cc",
        before="float Multiplier(float scale) const { return scale; }",
        after="float Multiplier(float scale) const { return 1.0f / DecodeScale(scale); }",
        tests=(_CONFORMANCE, _GOLDEN),
    ),
    Mutation(
        name="a NaN hides the other magnitudes of its block",
        path="core/quant/scalar_quantizer.cc",
        before="if (magnitude > amax) amax = magnitude;  // Never true of NaN, which is skipped.",
        after="if (!(magnitude <= amax)) amax = magnitude;",
        tests=_PLANES,
    ),
    Mutation(
        name="both planes of NVFP4 have the row plane's magnitude",
        path="core/quant/scalar_quantizer.cc",
        before="Nvfp4PlaneScaling scaling{Nvfp4Scaling(is_row ? amax.row : amax.column), {},",
        after="Nvfp4PlaneScaling scaling{Nvfp4Scaling(amax.row), {},",
        tests=_PLANES,
    ),
    Mutation(
        name="the column plane of NVFP4 records the row plane's magnitude",
        path="core/quant/quantize_request.cc",
        before="*plane.state = is_row ? amax.row : amax.column;",
        after="*plane.state = amax.row;",
        tests=_PLANES,
    ),
    Mutation(
        name="blocks of a row plane are rows although the recipe says squares",
        path="core/quant/plane_geometry.cc",
        before="  geometry.block_rows = is_row && !square ? 1 : block;\n",
        after="  geometry.block_rows = is_row ? 1 : block;\n",
        tests=_PLANES,
    ),
    Mutation(
        name="1-D block scales of the row plane are stored as the payload is",
        path="core/quant/plane_geometry.cc",
        before="geometry.scales_transposed = square ? !is_row : is_row;",
        after="geometry.scales_transposed = !is_row;",
        tests=("//core/quant:plane_geometry_test", _CONFORMANCE, _GOLDEN),
    ),
    Mutation(
        name="padding beside the scales is left as it was",
        path="core/quant/plane_padding.cc",
        before="std::fill_n(scales + used_bytes, row_bytes - used_bytes, uint8_t{0});",
        after="std::fill_n(scales + used_bytes, 0, uint8_t{0});",
        tests=_PLANES,
    ),
    Mutation(
        name="the last half byte of an odd packed row is left as it was",
        path="core/quant/plane_padding.cc",
        before="layout.payload_columns % 2 == 0) return;",
        after="true) return;",
        tests=_PLANES,
    ),
    Mutation(
        name="activations are rounded stochastically, too",
        path="core/quant/quantize_spec.cc",
        before="if (role == OperandRole::kGradient && recipe.stochastic_rounding)",
        after="if (recipe.stochastic_rounding)",
        tests=("//core/quant:quantize_spec_test",),
    ),
    # ---- Other orders
    Mutation(
        name="scales lie row by row in a tile",
        path="core/quant/scale_swizzle.h",
        before="outer % 32 * 16 + outer % 128 / 32 * 4",
        after="outer % 128 * 4",
        tests=("//core/quant:scale_swizzle_test", _GOLDEN),
    ),
    Mutation(
        name="tiles lie column by column",
        path="core/quant/scale_swizzle.cc",
        before="return layout.scale_dtype == DType::kF8E8M0 && layout.kind == PlaneKind::kColumn;",
        after="return layout.kind == PlaneKind::kColumn;",
        tests=("//core/quant:scale_swizzle_test", _GOLDEN),
    ),
    Mutation(
        name="a derived plane of NVFP4 has no magnitude",
        path="core/quant/plane_derivation.cc",
        before="  if (format == Format::kNvfp4) *to.state = *from.state;\n",
        after="",
        tests=("//core/quant:plane_derivation_test", _GOLDEN),
    ),
    Mutation(
        name="a derived scale is taken from the transposed block",
        path="core/quant/plane_derivation.cc",
        before="const int64_t scale_row = to_geometry.scales_transposed ? entry : line;",
        after="const int64_t scale_row = to_geometry.scales_transposed ? line : entry;",
        tests=("//core/quant:plane_derivation_test", _GOLDEN),
    ),
    Mutation(
        name="a transposed pair of 4-bit elements is swapped",
        path="core/quant/code_transpose.cc",
        before="row[i / 2] = PackPair(element(i, j), element(i + 1, j));",
        after="row[i / 2] = PackPair(element(i + 1, j), element(i, j));",
        tests=("//core/quant:code_transpose_test", "//core/quant:plane_derivation_test"),
    ),
)
