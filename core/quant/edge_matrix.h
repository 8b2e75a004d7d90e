#ifndef PLANEWISE_CORE_QUANT_EDGE_MATRIX_H_
#define PLANEWISE_CORE_QUANT_EDGE_MATRIX_H_
// Matrices that lie where a format's result changes: elements half-way between two
// codes under their block's scale and a step beside it, blocks whose scale would be
// another one for the next larger number, blocks of very different size. Made with
// the format's reference, since the edges depend on scales.
//
// Not here: inputs that are the same for every format (test_matrix.h).

#include <cstdint>
#include <random>
#include <vector>

#include "core/numeric/dtype.h"
#include "core/quant/quantize_spec.h"

namespace planewise {

enum class Edge {
  kCodes,   // between codes
  kScales,  // between the scales of blocks
  kSpread,  // blocks down to 2^-20 of the largest: scales that are subnormal or 0
};
inline constexpr Edge kEdges[] = {Edge::kCodes, Edge::kScales, Edge::kSpread};

// [rows, columns] values on the edges of a row plane under `spec`, before they are
// rounded to `source`.
std::vector<float> EdgeValues(Edge edge, const QuantizeSpec& spec, DType source, int64_t rows,
                              int64_t columns, std::mt19937_64& random);

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_EDGE_MATRIX_H_
