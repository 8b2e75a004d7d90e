#ifndef PLANEWISE_CORE_BASE_STRONG_INT_H_
#define PLANEWISE_CORE_BASE_STRONG_INT_H_
// Integers that are not interchangeable: ids and versions.
//
//   using SessionId = StrongInt<struct SessionIdTag>;
//
// Compare, hash and print; no arithmetic but Next().

#include <compare>
#include <cstdint>
#include <ostream>
#include <utility>

namespace planewise {

template <typename Tag>
class StrongInt {
 public:
  constexpr StrongInt() = default;
  constexpr explicit StrongInt(uint64_t value) : value_(value) {}

  constexpr uint64_t value() const { return value_; }
  constexpr StrongInt Next() const { return StrongInt(value_ + 1); }

  constexpr auto operator<=>(const StrongInt&) const = default;

  template <typename H>
  friend H AbslHashValue(H state, StrongInt id) {
    return H::combine(std::move(state), id.value_);
  }
  friend std::ostream& operator<<(std::ostream& out, StrongInt id) { return out << id.value_; }

 private:
  uint64_t value_ = 0;
};

// Ids that core, planner and service share.
using WeightVersion = StrongInt<struct WeightVersionTag>;  // never reused, 0 = none
using SessionId = StrongInt<struct SessionIdTag>;
using StepId = StrongInt<struct StepIdTag>;
using OperationId = StrongInt<struct OperationIdTag>;  // session-ordered, from 1
using HandleId = StrongInt<struct HandleIdTag>;        // a saved operand

}  // namespace planewise

#endif  // PLANEWISE_CORE_BASE_STRONG_INT_H_
