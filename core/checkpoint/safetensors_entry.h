#ifndef PLANEWISE_CORE_CHECKPOINT_SAFETENSORS_ENTRY_H_
#define PLANEWISE_CORE_CHECKPOINT_SAFETENSORS_ENTRY_H_
// One tensor of a safetensors file, as its header describes it.

#include <cstdint>
#include <string>
#include <vector>

#include "core/numeric/dtype.h"

namespace planewise {

struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::kU8;
  std::vector<int64_t> shape;  // F4: logical elements, two a byte
  int64_t offset = 0;          // from the start of the file
  int64_t length = 0;          // bytes

  bool operator==(const SafetensorsEntry&) const = default;
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_SAFETENSORS_ENTRY_H_
