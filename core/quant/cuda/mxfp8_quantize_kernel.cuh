#ifndef PLANEWISE_CORE_QUANT_CUDA_MXFP8_QUANTIZE_KERNEL_CUH_
#define PLANEWISE_CORE_QUANT_CUDA_MXFP8_QUANTIZE_KERNEL_CUH_
// The device code of MXFP8 row quantization.
//
// A warp makes 32 consecutive scale bytes, in four rounds of eight. In a round
// four lanes share a block: each reads 8 elements (16 bytes of BF16 or F16, 32 of
// F32), so a warp reads 256 consecutive elements. All four rounds are loaded
// before the first is used: 64 to 128 bytes in flight per thread keep the memory
// busy. Scale bytes without a block are padding and become 0 the same way: a
// block of zeros has scale 0.
//
// Not here: the rule from amax to scale (core/quant/mxfp8_block.h), which the
// scalar quantizer shares.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>

#include "core/numeric/float8_e4m3.h"
#include "core/numeric/float8_e5m2.h"
#include "core/quant/cuda/mxfp8_quantize_params.h"
#include "core/quant/mxfp8_block.h"

namespace planewise {

template <typename Element>
struct Mxfp8QuantizeConfig;

template <>
struct Mxfp8QuantizeConfig<Float8E4M3> {
  static constexpr __nv_fp8_interpretation_t kConversion = __NV_E4M3;
};

template <>
struct Mxfp8QuantizeConfig<Float8E5M2> {
  static constexpr __nv_fp8_interpretation_t kConversion = __NV_E5M2;
};

// What one lane has of a block.
template <typename Source>
struct alignas(16) Octet {
  Source values[8];
};

__device__ inline float WidenOnDevice(float value) { return value; }
__device__ inline float WidenOnDevice(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ inline float WidenOnDevice(__half value) { return __half2float(value); }

// The largest magnitude of the block that this lane shares with three others;
// fmaxf skips NaN.
template <typename Source>
__device__ float BlockAmax(const Octet<Source>& octet) {
  float amax = 0.0f;
#pragma unroll
  for (int i = 0; i < 8; ++i) amax = fmaxf(amax, fabsf(WidenOnDevice(octet.values[i])));
  amax = fmaxf(amax, __shfl_xor_sync(0xFFFFFFFFu, amax, 1));
  return fmaxf(amax, __shfl_xor_sync(0xFFFFFFFFu, amax, 2));
}

// Nearest even, saturating; NaN becomes 0x7F: what the conversion instruction does.
template <typename Element, typename Source>
__device__ uint2 Encode(const Octet<Source>& octet, float multiplier) {
  uint32_t pairs[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 scaled = {__fmul_rn(WidenOnDevice(octet.values[2 * i]), multiplier),
                           __fmul_rn(WidenOnDevice(octet.values[2 * i + 1]), multiplier)};
    pairs[i] = __nv_cvt_float2_to_fp8x2(scaled, __NV_SATFINITE,
                                        Mxfp8QuantizeConfig<Element>::kConversion);
  }
  return {pairs[0] | pairs[1] << 16, pairs[2] | pairs[3] << 16};
}

template <typename Source, typename Element>
__global__ void Mxfp8QuantizeKernel(const Mxfp8QuantizeParams params) {
  constexpr uint32_t kNoBlock = 0xFFFFFFFFu;
  constexpr uint32_t kAllLanes = 0xFFFFFFFFu;
  constexpr int kRounds = 4;
  constexpr uint32_t kBlocksPerRound = 8;
  constexpr uint32_t kLanesPerBlock = 4;

  const uint32_t lane = threadIdx.x % 32;
  const uint32_t scale_index = blockIdx.x * blockDim.x + threadIdx.x;
  // The count is a multiple of 32: a warp is all inside or all outside.
  if (scale_index >= params.scale_count) return;

  const uint32_t scale_row = scale_index / params.scale_columns;
  const uint32_t scale_column = scale_index % params.scale_columns;
  const bool is_padding = scale_row >= params.rows || scale_column >= params.blocks_per_row;
  const uint32_t own_block =
      is_padding ? kNoBlock : scale_row * params.blocks_per_row + scale_column;

  const auto* source = static_cast<const Octet<Source>*>(params.source);
  auto* payload = reinterpret_cast<uint2*>(params.payload);

  uint32_t blocks[kRounds];
  Octet<Source> octets[kRounds];
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    blocks[round] =
        __shfl_sync(kAllLanes, own_block, round * kBlocksPerRound + lane / kLanesPerBlock);
    octets[round] = {};
    if (blocks[round] != kNoBlock) {
      octets[round] = source[uint64_t{blocks[round]} * kLanesPerBlock + lane % kLanesPerBlock];
    }
  }

  uint32_t own_scale = 0;
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    const ScaleE8M0 scale = Mxfp8Scale<Element>(BlockAmax(octets[round]));
    if (blocks[round] != kNoBlock) {
      payload[uint64_t{blocks[round]} * kLanesPerBlock + lane % kLanesPerBlock] =
          Encode<Element>(octets[round], scale.EncodeMultiplier());
    }
    // The lane whose scale byte this is takes it from a lane that computed it.
    const uint32_t gathered = __shfl_sync(kAllLanes, static_cast<uint32_t>(scale.bits),
                                          lane % kBlocksPerRound * kLanesPerBlock);
    if (lane / kBlocksPerRound == static_cast<uint32_t>(round)) own_scale = gathered;
  }
  params.scales[scale_index] = static_cast<uint8_t>(own_scale);
}

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_CUDA_MXFP8_QUANTIZE_KERNEL_CUH_
