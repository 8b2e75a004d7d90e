#include "service/session/byte_ranges.h"

#include <algorithm>
#include <iterator>

namespace planewise {

std::vector<ByteRange> ByteRanges::Add(ByteRange range) {
  std::vector<ByteRange> added;
  if (range.begin >= range.end) return added;
  // The first range that touches the new one, and from there all of them.
  auto touching = ranges_.upper_bound(range.begin);
  if (touching != ranges_.begin() && std::prev(touching)->second >= range.begin) --touching;
  ByteRange merged = range;
  uint64_t uncovered = range.begin;
  while (touching != ranges_.end() && touching->first <= range.end) {
    if (touching->first > uncovered) added.push_back({uncovered, touching->first});
    uncovered = std::max(uncovered, touching->second);
    merged.begin = std::min(merged.begin, touching->first);
    merged.end = std::max(merged.end, touching->second);
    touching = ranges_.erase(touching);
  }
  if (uncovered < range.end) added.push_back({uncovered, range.end});
  ranges_.emplace(merged.begin, merged.end);
  for (const ByteRange& part : added) total_ += part.size();
  return added;
}

}  // namespace planewise
