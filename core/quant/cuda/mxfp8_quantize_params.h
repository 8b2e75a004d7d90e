#ifndef PLANEWISE_CORE_QUANT_CUDA_MXFP8_QUANTIZE_PARAMS_H_
#define PLANEWISE_CORE_QUANT_CUDA_MXFP8_QUANTIZE_PARAMS_H_
// What the kernel is given at launch, and which of its instantiations.

#include <cstdint>
#include <type_traits>

namespace planewise {

struct Mxfp8QuantizeParams {
  const void* source = nullptr;  // [rows, 32 * blocks_per_row], aligned to 16
  uint8_t* payload = nullptr;    // [rows, 32 * blocks_per_row], aligned to 16
  uint8_t* scales = nullptr;     // [scale_rows, scale_columns]
  uint32_t rows = 0;
  uint32_t blocks_per_row = 0;   // blocks of 32 elements
  uint32_t scale_columns = 0;    // >= blocks_per_row; the rest is padding
  uint32_t scale_count = 0;      // a multiple of 32
};
static_assert(std::is_trivially_copyable_v<Mxfp8QuantizeParams>);

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_CUDA_MXFP8_QUANTIZE_PARAMS_H_
