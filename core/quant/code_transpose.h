#ifndef PLANEWISE_CORE_QUANT_CODE_TRANSPOSE_H_
#define PLANEWISE_CORE_QUANT_CODE_TRANSPOSE_H_
// Transposes matrices of codes, of a byte or of half a byte each. Codes are moved and
// never looked at.
//
// Not here: which planes are transposes of each other (plane_derivation.h).

#include <cstdint>

namespace planewise {

// Rows of codes in memory, `row_bytes` bytes from one to the next.
struct CodeRows {
  const uint8_t* first = nullptr;
  int64_t row_bytes = 0;
};

struct MutableCodeRows {
  uint8_t* first = nullptr;
  int64_t row_bytes = 0;
};

// to [columns, rows] = the transpose of from [rows, columns], a byte an element. The
// two do not overlap.
void TransposeBytes(CodeRows from, int64_t rows, int64_t columns, MutableCodeRows to);

// The same of packed 4-bit elements, the one of even index in the low half of its
// byte; rows begin at whole bytes. Of an odd number of rows, the last half byte of
// each row of `to` is 0.
void TransposePacked(CodeRows from, int64_t rows, int64_t columns, MutableCodeRows to);

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_CODE_TRANSPOSE_H_
