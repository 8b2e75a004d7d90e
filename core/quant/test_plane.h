#ifndef PLANEWISE_CORE_QUANT_TEST_PLANE_H_
#define PLANEWISE_CORE_QUANT_TEST_PLANE_H_
// A plane's memory for tests, of any format: not zero to begin with, and noticing
// bytes written outside it.
//
// Not here: what goes in (test_matrix.h).

#include <cstdint>
#include <vector>

#include "core/quant/quantizer.h"
#include "core/quant/test_matrix.h"
#include "core/tensor/plane_layout.h"

namespace planewise {

class TestPlane {
 public:
  // `row` has what a column plane of this layout shares with it, and lives longer.
  explicit TestPlane(const PlaneLayout& layout, const TestPlane* row = nullptr);
  TestPlane(const TestPlane&) = delete;
  TestPlane& operator=(const TestPlane&) = delete;

  const PlaneLayout& layout() const { return span_.layout; }
  // For writing what the plane stores itself.
  const PlaneSpan& span() const { return span_; }
  // For reading, what it shares included.
  ConstPlaneSpan const_span() const;

  std::vector<uint8_t> payload() const { return payload_.contents(); }
  std::vector<uint8_t> scales() const { return scales_.contents(); }
  const std::vector<float>& state() const { return state_; }
  bool GuardsIntact() const { return payload_.GuardsIntact() && scales_.GuardsIntact(); }

 private:
  GuardedBytes payload_;
  GuardedBytes scales_;
  std::vector<float> state_;
  PlaneSpan span_;
  const TestPlane* row_;
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_TEST_PLANE_H_
