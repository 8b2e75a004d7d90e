#ifndef PLANEWISE_SERVICE_SESSION_BYTE_RANGES_H_
#define PLANEWISE_SERVICE_SESSION_BYTE_RANGES_H_
// A set of positions, kept as ranges: which bytes of a string have come.

#include <cstdint>
#include <map>
#include <vector>

namespace planewise {

// [begin, end).
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;

  bool operator==(const ByteRange&) const = default;
  uint64_t size() const { return end - begin; }
};

// One thread. Adjacent ranges are one, so bytes that come in order cost nothing.
class ByteRanges {
 public:
  // Adds `range` and returns the parts of it that were not there before.
  std::vector<ByteRange> Add(ByteRange range);

  // Positions in the set.
  uint64_t total() const { return total_; }
  // Ranges that it takes to say so.
  int count() const { return static_cast<int>(ranges_.size()); }

 private:
  std::map<uint64_t, uint64_t> ranges_;  // begin -> end; disjoint, not adjacent
  uint64_t total_ = 0;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_SESSION_BYTE_RANGES_H_
