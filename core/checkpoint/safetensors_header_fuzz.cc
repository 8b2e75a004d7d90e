// Hostile bytes as a safetensors file. Invariants, for any bytes:
//  1. A refusal is INVALID_CHECKPOINT and names the file.
//  2. The tensors of a header that is accepted tile the data from its start to
//     the file's end, in order.
//  3. Each is as long as its shape and dtype say, and no two have one name.

#include <cstdint>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "core/base/error.h"
#include "core/checkpoint/safetensors_header.h"
#include "core/numeric/dtype.h"
#include "tests/testing/fuzz_check.h"

namespace planewise {
namespace {

void CheckRefusal(const absl::Status& status) {
  FuzzCheck(ReasonOf(status) == Reason::kInvalidCheckpoint &&
                absl::StrContains(status.message(), "some.safetensors"),
            "1: a refusal is INVALID_CHECKPOINT and names the file");
}

void CheckHeader(const SafetensorsHeader& header, int64_t file_bytes) {
  int64_t offset = header.data_offset;
  std::set<std::string> names;
  for (const SafetensorsEntry& tensor : header.tensors) {
    FuzzCheck(tensor.offset == offset && tensor.length >= 0, "2: tensors tile the data");
    offset += tensor.length;
    // In 128 bits nothing that fits the file overflows; an empty tensor may have any
    // other dimensions.
    __int128 bits = FactsOf(tensor.dtype).bits;
    bool empty = false;
    for (const int64_t dimension : tensor.shape) empty |= dimension == 0;
    if (empty) bits = 0;
    for (const int64_t dimension : tensor.shape) {
      if (bits != 0) bits *= dimension;
      FuzzCheck(bits <= __int128{file_bytes} * 8, "3: no tensor is longer than the file");
    }
    FuzzCheck(bits == __int128{tensor.length} * 8, "3: as long as shape and dtype say");
    FuzzCheck(names.insert(tensor.name).second, "3: no two tensors have one name");
  }
  FuzzCheck(offset == file_bytes, "2: the data ends with the file");
}

void CheckFile(absl::string_view bytes) {
  const auto file_bytes = static_cast<int64_t>(bytes.size());
  const absl::StatusOr<int64_t> length = SafetensorsHeaderLength(
      "some.safetensors", file_bytes, bytes.substr(0, kSafetensorsLengthBytes));
  if (!length.ok()) return CheckRefusal(length.status());
  const absl::StatusOr<SafetensorsHeader> header = ParseSafetensorsHeader(
      "some.safetensors", file_bytes, bytes.substr(kSafetensorsLengthBytes, *length));
  if (!header.ok()) return CheckRefusal(header.status());
  CheckHeader(*header, file_bytes);
}

}  // namespace
}  // namespace planewise

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  planewise::CheckFile({reinterpret_cast<const char*>(data), size});
  return 0;
}
